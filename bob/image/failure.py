"""One line that says why mmdebstrap failed: the network, a full disk, or the words that mmdebstrap or apt printed."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from bob.errors import ImageError
from bob.image.recipe import Recipe

MIRROR = "http://deb.debian.org/debian"  # mmdebstrap's own choice
VARIABLE = "BOB_MIRROR"  # replaces it: an address, a line as in sources.list, or a file of such lines
_ADDRESS = re.compile(r"https?://\S+")
_PATIENCE = 20.0  # seconds
_LOW = 64 * 2**20  # bytes: apt and dpkg stop a little before a disk is full
_UNREACHED = re.compile(
    r"Temporary failure resolving '[^']+'|Could not resolve '[^']+'|Could not (?:connect|handshake)[^\n]*"
    r"|Unable to connect[^\n]*|Connection (?:failed|timed out|refused)[^\n]*|Network is unreachable"
    r"|\b(?:403|404|407|50\d)  [A-Z][^\n\[]*"
)
_FULL = re.compile(r"No space left on device|You don't have enough free space|Disk quota exceeded", re.I)


def why_unreachable(suite: str) -> str | None:
    """Return why this machine cannot read the Debian suite ``suite`` from its mirror. Return None if it can, or if the
    mirror is not on the web."""
    given = os.environ.get(VARIABLE, MIRROR)
    if Path(given).is_file():
        given = Path(given).read_text(errors="replace")
    if (found := _ADDRESS.search(given)) is None:
        return None
    address = f"{found[0].rstrip('/')}/dists/{suite}/InRelease"
    try:
        with urlopen(Request(address, method="HEAD"), timeout=_PATIENCE):
            return None
    except HTTPError as error:
        return f"{address}: {error.code} {error.reason}"
    except (URLError, OSError, ValueError) as error:
        return f"{address}: {getattr(error, 'reason', error)}"


def explained(lines: Sequence[str], recipe: Recipe, log: Path, folders: Iterable[Path]) -> ImageError:
    """Return the error for a build that printed ``lines``, which ``log`` also has. The build wrote into ``folders``,
    and one of them may be on a full disk."""
    said, where = "\n".join(lines), f"the whole output is in {log}"
    full = [folder for folder in folders if shutil.disk_usage(folder).free < _LOW]
    if full or _FULL.search(said):
        place = full[0] if full else Path(os.environ.get("TMPDIR", tempfile.gettempdir()))
        variable = "XDG_CACHE_HOME" if place == log.parent else "TMPDIR"
        return ImageError(
            f"the disk with {place} is full", hint=f"free some space, or set {variable} to another folder; {where}"
        )
    if unreached := _UNREACHED.search(said):
        return ImageError(
            f"cannot download the packages of Debian {recipe.suite}: {unreached[0].strip()}",
            hint=f"is there a network? {VARIABLE} sets another mirror, http_proxy a proxy; {where}",
        )
    return ImageError(f"mmdebstrap failed: {_last_word(lines)}", hint=f"{where}; {VARIABLE} sets the mirror")


def _last_word(lines: Sequence[str]) -> str:
    said = [line for line in lines if line and not line.startswith("I: ")]
    # mmdebstrap's own last error only names the command that failed; the error before it says why.
    errors = [line for line in said if line.startswith("E: ") and "failed to run" not in line]
    return (errors or said or ["it printed nothing"])[-1].removeprefix("E: ")
