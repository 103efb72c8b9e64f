"""Find calls that change or sync files outside the directory under test. Crash states do not show these files."""

from collections.abc import Sequence

from bob.program.paths import Paths
from bob.program.strace import SystemCall
from bob.program.untraced import CHANGES, COPIED_FROM, NOT_FOLLOWED, RENAMES
from bob.protocol import arguments as args

_BY_DESCRIPTOR = {
    **dict.fromkeys((*CHANGES, "fchmod", "fchown", "fsync", "fdatasync", "sync_file_range", "syncfs"), 0),
    **{name: place for name, place in NOT_FOLLOWED.items() if name in COPIED_FROM},
}
_BY_NAME = {
    **RENAMES,
    **args.LINKS,
    **{
        name: (place,)
        for places in (args.MAKES, args.SYMLINKS, args.REMOVES, args.MODES, args.OWNERS, args.TRUNCATES)
        for name, place in places.items()
    },
}  # indexes of a call's files among its arguments
_NO_DISK = "/dev/", "/proc/", "/sys/"  # directories whose files are not on a disk


def files_outside(calls: Sequence[SystemCall], root: str, world: str) -> tuple[str, ...]:
    """Return a path for each call that changes or syncs only files outside ``root``. This is the first path in the
    call's arguments. If the program runs in a chroot(2), its root directory is the directory ``world`` of the virtual
    machine. The returned paths are as the program sees them."""
    paths, found = Paths(root, calls), list[str]()
    for call in calls:
        if call.result is None:
            continue
        paths.take(call)
        about = [call.path(_BY_DESCRIPTOR[call.name])] if call.name in _BY_DESCRIPTOR else []
        about += [paths.of_guest(call, place) for place in _BY_NAME.get(call.name, ())]
        own = [path.removeprefix(world) for path in about]
        if own and all(path.startswith("/") and not path.startswith(_NO_DISK) for path in own):
            found += [own[0]] * (not any(path == root or paths.below(path) for path in own))
    return tuple(found)
