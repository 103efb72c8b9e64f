"""The kinds of a disk's write cache, by their names in documents and on the command line. The default comes first."""

from importlib import import_module
from pkgutil import iter_modules

from bob.crash.caches.rule import WriteCache
from bob.crash.caches.volatile import CACHE as VOLATILE

_FOUND = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if module.name != "rule"]

CACHES: dict[str, WriteCache] = {
    cache.name: cache for cache in [VOLATILE, *sorted((each.CACHE for each in _FOUND), key=lambda one: str(one.name))]
}

__all__ = ["CACHES", "VOLATILE", "WriteCache"]
