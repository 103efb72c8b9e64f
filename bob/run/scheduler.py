"""Find the scheduler of a Dask cluster, and connect to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from bob.errors import MissingProgramError, UsageError

CONNECT_SECONDS = 10
_FORMS = "name an address such as tcp://server:8786, or the file that `dask scheduler` wrote"


def address_of(said: str) -> str:
    """Return the address of a scheduler. The user gave ``said``: either this address, or the path of a file that `dask
    scheduler` wrote. Raise UsageError if ``said`` is neither."""
    path = Path(said)
    if not path.is_file():
        if "://" in said or _is_port(said.rpartition(":")[2]):
            return said
        raise UsageError(f"{said} is neither a scheduler's address nor a file", hint=_FORMS)
    try:
        address = json.loads(path.read_bytes())["address"]
        if not isinstance(address, str):
            raise TypeError
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=_FORMS) from None
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{path} is not a scheduler's file: it lacks an address", hint=_FORMS) from None
    return address


@lru_cache
def reached(said: str) -> str:
    """Return the address of the scheduler that ``said`` names, if the scheduler answers. Raise UsageError if it does
    not answer, and MissingProgramError if dask.distributed is not installed."""
    address = address_of(said)
    with connected(address):
        return address


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Open a Dask client of the scheduler at ``address``. Raise MissingProgramError if dask.distributed is not
    installed, and UsageError if no scheduler answers."""
    try:
        import dask

        with dask.config.set({"logging.distributed": "critical"}):
            from distributed import Client
            from distributed.comm.addressing import normalize_address, parse_address, parse_host_port
            from distributed.comm.registry import get_backend
    except ImportError:
        raise MissingProgramError(
            "--scheduler needs Dask", hint="in a checkout of bob: pip install '.[cluster]'"
        ) from None
    try:
        # Check the address first: a client with a wrong address takes long to end.
        scheme, place = parse_address(normalize_address(address))
        get_backend(scheme)
        if scheme != "inproc":
            parse_host_port(place)
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="bob")
    except (OSError, ValueError, TypeError, KeyError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"no scheduler answers at {address}: {words}", hint="`dask scheduler` starts one") from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=CONNECT_SECONDS)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit()
