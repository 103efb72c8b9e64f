"""Models by name: built-in ones, derived ones that bob ships, and files."""

from collections.abc import Sequence
from pathlib import Path

from bob.apm.builtin import builtin, names
from bob.apm.model import Model, load, with_distinct_names
from bob.errors import UsageError, meant
from bob.resources import shipped

SHIPPED_MODELS = "osdi14-linux-6.1"  # the paper's configurations, on the default image's kernel

EVERY = "all"


def model_names() -> list[str]:
    return list(dict.fromkeys([*names(), *_shipped_models()]))


def named_model(name: str) -> Model:
    """Return the model ``name``: built-in, else the file with this path, else shipped. Raise UsageError if none is."""
    if name in names():
        return builtin(name)
    if Path(name).is_file():
        return load(Path(name))
    derived = _shipped_models()
    if name in derived:
        return load(derived[name])
    hint = meant(name, model_names(), "name a file of `bob apm derive`, or one of")
    raise UsageError(f"unknown model {name!r}", hint=hint)


def named_models(wanted: Sequence[str]) -> list[Model]:
    """Return models by name, each once (:data:`EVERY`: all built-in and shipped). Shared names get their origin."""
    found: list[Model] = []
    for name in dict.fromkeys(wanted):
        if name == EVERY:
            found += [*map(builtin, names()), *map(load, _shipped_models().values())]
        else:
            found.append(named_model(name))
    return with_distinct_names(found)


def _shipped_models() -> dict[str, Path]:
    folder = shipped("reports/models") / SHIPPED_MODELS
    return {path.stem: path for path in sorted(folder.glob("*.json"))}
