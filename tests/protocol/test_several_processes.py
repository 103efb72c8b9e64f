"""Calls of processes that share descriptors, directories and mappings, or have copies; and names that are links.

Held against the kernel: each process of a script has its own table of real descriptors here, which a fork duplicates.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.apm.builtin import builtin
from bob.apm.micro import workings
from bob.apm.model_graph import graph_under
from bob.apm.model_states import ModelStates
from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.protocol.outside_files import files_outside
from bob.protocol.replay import other_modes, replayed, unlike
from bob.protocol.unsynced import unsynced_at_outputs
from bob.workload import operations as ops

from .test_protocol import asked_of, described, escaped, protocol, shown

PARENT, CHILD = 1, 2
NAMES = ("a", "b", "d/a", "d/c", "s", "l/a", "l/c", "d/up", "../b", "l/../b", "./a")
"""As a process may write them; ``s``, ``l`` and ``d/up`` are symbolic links."""
COPIED, SHARED = "flags=SIGCHLD", "flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD"


def tree_in(root: Path) -> dict[str, Node]:
    """What is there, asked of the kernel."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status, kind = path.lstat(), "file"
        kind = "directory" if stat.S_ISDIR(status.st_mode) else "symlink" if path.is_symlink() else "file"
        content = path.read_bytes() if kind == "file" else b""
        target = str(path.readlink()) if kind == "symlink" else ""
        name = "/" + str(path.relative_to(root)) if path != root else "/"
        mode = stat.S_IMODE(status.st_mode)
        found[name] = Node(kind, status.st_ino, status.st_nlink, len(content), content, target, mode=mode)
    return found


def open_path(real: int) -> str:
    """Where the kernel has the file behind a descriptor."""
    return str(Path(f"/proc/self/fd/{real}").readlink())


@dataclass
class Process:
    """Descriptors by number, and the working directory, as the kernel would say it."""

    files: dict[int, int]
    folder: list[str]


@dataclass
class Processes:
    """Calls that were made below ``root``, as strace would tell them, and what was there before and after each."""

    root: Path
    calls: list[SystemCall] = field(default_factory=list)
    trees: list[dict[str, Node]] = field(default_factory=list)
    synced: dict[int, int] = field(default_factory=dict)
    """By the number of a call the inode that it synced."""
    of: dict[int, Process] = field(default_factory=dict)
    late: SystemCall | None = None
    """The call of the parent that has made the child, where strace has not written it down."""

    def __post_init__(self) -> None:
        (self.root / "d").mkdir()
        (self.root / "a").write_bytes(b"first" * 100)
        (self.root / "b").write_bytes(b"second" * 100)
        for name, target in (("s", "a"), ("l", "d"), ("d/up", "../b")):
            (self.root / name).symlink_to(target)
        self.trees.append(tree_in(self.root))
        self.of[PARENT] = Process({}, [str(self.root)])

    def call(self, pid: int, name: str, arguments: tuple[str, ...], result: int = 0, opened: str = "") -> None:
        if pid == PARENT and self.late is not None:  # until then the kernel had not let it go on
            self.calls.append(self.late)
            self.trees.append(self.trees[-1])
            self.late = None
        self.calls.append(SystemCall(pid, 0.0, name, arguments, result, opened))
        self.trees.append(tree_in(self.root))

    def path(self, pid: int, name: str) -> Path:
        """Raises OSError for one that is not below the root."""
        folder, _slash, last = f"{self.of[pid].folder[0]}/{name}".rpartition("/")
        path = Path(os.path.realpath(folder)) / last
        if last == ".." or self.root not in path.parents:
            raise FileNotFoundError(path)
        return path

    def told(self, pid: int, number: int) -> str:
        """A descriptor as ``strace -y`` has it."""
        name, deleted, _rest = open_path(self.of[pid].files[number]).partition(" (deleted)")
        return described(number, name) + deleted.strip()

    def fork(self, flags: str, *, is_late: bool) -> None:
        if CHILD in self.of:
            return
        mine = self.of[PARENT]
        copied = Process({number: os.dup(real) for number, real in mine.files.items()}, list(mine.folder))
        self.of[CHILD] = copied if flags == COPIED else mine
        made = SystemCall(PARENT, 0.0, "clone", ("child_stack=NULL", flags), CHILD)
        if is_late:
            self.late = made
        else:
            self.calls.append(made)
            self.trees.append(self.trees[-1])

    def open(self, pid: int, name: str, flags: str) -> None:
        bits = {
            "O_RDWR": os.O_RDWR,
            "O_RDWR|O_CREAT": os.O_RDWR | os.O_CREAT,
            "O_WRONLY|O_TRUNC": os.O_WRONLY | os.O_TRUNC,
        }
        try:
            real = os.open(self.path(pid, name), bits[flags], 0o644)
        except OSError:
            return
        files = self.of[pid].files
        number = next(one for one in range(3, 99) if one not in files)
        files[number] = real
        self.call(pid, "openat", ("AT_FDCWD", escaped(name.encode()), flags, "0644"), number, open_path(real))

    def close(self, pid: int, place: int) -> None:
        def work(number: int, real: int) -> None:
            told = self.told(pid, number)
            os.close(real)
            del self.of[pid].files[number]
            self.call(pid, "close", (told,))

        self.with_file(pid, place, work)

    def pipe(self, pid: int, count: int) -> None:
        """A program reads from a pipe, and closes it. Nothing says that it has one, but that it has the next number."""
        files = self.of[pid].files
        number = next(one for one in range(3, 99) if one not in files)
        self.call(pid, "read", (hex(number), "0x7ffc02d53adf", hex(count)), count)
        self.call(pid, "close", (f"{number}<pipe:[9]>",))

    def with_file(self, pid: int, place: int, work: Callable[[int, int], None]) -> None:
        files = self.of[pid].files
        if files:
            number = sorted(files)[place % len(files)]
            work(number, files[number])

    def write(self, pid: int, place: int, data: bytes) -> None:
        def work(number: int, real: int) -> None:
            told = self.told(pid, number)
            self.call(pid, "write", (told, escaped(data), str(len(data))), os.write(real, data))

        self.with_file(pid, place, work)

    def read(self, pid: int, place: int, count: int) -> None:
        def work(number: int, real: int) -> None:
            try:
                done = len(os.read(real, count))
            except OSError:
                return
            self.call(pid, "read", (hex(number), "0x7ffc02d53adf", hex(count)), done)

        self.with_file(pid, place, work)

    def send(self, pid: int, place: int, count: int, name: str) -> None:
        """To where no file is: sendfile to a device, or splice to a pipe. What it takes counts as read."""

        def work(number: int, real: int) -> None:
            told = self.told(pid, number)
            read_end, write_end = os.pipe()
            device = os.open("/dev/null", os.O_WRONLY)
            try:
                if name == "splice":
                    done = os.splice(real, write_end, count)
                    self.call(pid, name, (told, "NULL", "9<>", "NULL", str(count), "0"), done)
                else:
                    done = os.sendfile(device, real, None, count)
                    self.call(pid, name, (described(9, "/dev/null"), told, "NULL", str(count)), done)
            except OSError:
                pass
            finally:
                for one in (read_end, write_end, device):
                    os.close(one)

        self.with_file(pid, place, work)

    def fsync(self, pid: int, place: int) -> None:
        def work(number: int, real: int) -> None:
            self.call(pid, "fsync", (self.told(pid, number),))
            self.synced[len(self.calls) - 1] = os.fstat(real).st_ino

        self.with_file(pid, place, work)

    def chmod(self, pid: int, name: str, mode: int) -> None:
        self.named(pid, "chmod", lambda path: path.chmod(mode), name, f"0{mode:o}")

    def truncate(self, pid: int, name: str, size: int) -> None:
        self.named(pid, "truncate", lambda path: os.truncate(path, size), name, str(size))

    def unlink(self, pid: int, name: str) -> None:
        self.named(pid, "unlink", Path.unlink, name)

    def named(self, pid: int, call: str, work: Callable[[Path], None], name: str, *more: str) -> None:
        try:
            work(self.path(pid, name))
        except OSError:
            return
        self.call(pid, call, (escaped(name.encode()), *more))

    def rename(self, pid: int, old: str, new: str) -> None:
        try:
            self.path(pid, old).rename(self.path(pid, new))
        except OSError:
            return
        self.call(pid, "rename", (escaped(old.encode()), escaped(new.encode())))

    def chdir(self, pid: int, name: str) -> None:
        try:
            path = self.path(pid, name).resolve()
        except OSError:
            return
        if path.is_dir():
            self.of[pid].folder[0] = str(path)
            self.call(pid, "chdir", (escaped(name.encode()),))

    def end(self) -> None:
        for process in {id(one.files): one.files for one in self.of.values()}.values():
            for real in process.values():
                os.close(real)
        if self.late is not None:
            self.calls.append(self.late)
            self.trees.append(self.trees[-1])


pids, names, places = st.sampled_from((PARENT, CHILD)), st.sampled_from(NAMES), st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("open"), pids, names, st.sampled_from(["O_RDWR", "O_RDWR|O_CREAT", "O_WRONLY|O_TRUNC"])),
    st.tuples(st.just("close"), pids, places),
    st.tuples(st.just("pipe"), pids, st.integers(1, 9)),
    st.tuples(st.just("write"), pids, places, st.binary(min_size=1, max_size=40)),
    st.tuples(st.just("read"), pids, places, st.integers(1, 700)),
    st.tuples(st.just("send"), pids, places, st.integers(1, 700), st.sampled_from(["sendfile", "splice"])),
    st.tuples(st.just("fsync"), pids, places),
    st.tuples(st.just("chmod"), pids, names, st.sampled_from([0o600, 0o640])),
    st.tuples(st.just("truncate"), pids, names, st.integers(0, 700)),
    st.tuples(st.just("unlink"), pids, names),
    st.tuples(st.just("rename"), pids, names, names),
    st.tuples(st.just("chdir"), pids, st.sampled_from(["d", "l", "../d", "l/../l"])),
)


Script = list[tuple[object, ...]]


def done_by(before: Script, after: Script, flags: str, *, is_late: bool) -> Processes:
    """What the parent does ``before`` it has a child, and what both do ``after`` that. The folder is gone then."""
    old = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = Processes(Path(folder).resolve())
            try:
                for name, _pid, *arguments in before:
                    getattr(done, str(name))(PARENT, *arguments)
                done.fork(flags, is_late=is_late)
                for name, *arguments in after:
                    getattr(done, str(name))(*arguments)
            finally:
                done.end()
            return done
    finally:
        os.umask(old)


@settings(deadline=None, max_examples=300)
@given(st.lists(steps, max_size=6), st.lists(steps, max_size=10), st.sampled_from([COPIED, SHARED]), st.booleans())
@example([], [("open", PARENT, "a", "O_RDWR"), ("write", CHILD, 0, b"new")], SHARED, False)
@example(
    [("open", 1, "a", "O_RDWR"), ("open", 1, "b", "O_RDWR")],
    [("close", 1, 0), ("pipe", 1, 5), ("write", 2, 0, b"n")],
    COPIED,
    False,
)
@example([("open", 1, "a", "O_RDWR"), ("send", 1, 0, 7, "sendfile"), ("write", 1, 0, b"new")], [], SHARED, False)
@example([("open", 1, "a", "O_RDWR"), ("send", 1, 0, 7, "splice"), ("write", 1, 0, b"new")], [], SHARED, False)
@example(
    [], [("open", PARENT, "a", "O_RDWR"), ("open", CHILD, "b", "O_RDWR"), ("write", CHILD, 0, b"new")], COPIED, False
)
@example(
    [], [("chdir", CHILD, "l"), ("open", PARENT, "c", "O_RDWR|O_CREAT"), ("chmod", PARENT, "c", 0o600)], SHARED, False
)
def test_what_several_processes_do_is_what_the_kernel_shows_after_each_call(
    before: Script, after: Script, flags: str, is_late: bool
) -> None:
    done = done_by(before, after, flags, is_late=is_late)
    effects = protocol(done.calls, str(done.root), done.trees[0], done.trees[-1])
    assert not effects.untold
    replay = replayed("p", effects, done.trees[0], {})
    for number, call in enumerate(replay.calls, start=1):
        assert shown(replay, replay.history.steps[number]) == asked_of(done.trees[call + 1]), done.calls[call]
    assert unlike(replay.history, done.trees[-1]) == ()
    synced = [deed for deed in effects.deeds if isinstance(deed.operation, ops.Fsync)]
    syncs = {deed.call: effects.files[deed.file].inode for deed in synced}
    assert syncs.keys() == done.synced.keys()
    for call, inode in syncs.items():
        assert inode in (0, done.synced[call]), done.calls[call]


def call(pid: int, name: str, *arguments: str, result: int = 0, opened: str = "") -> SystemCall:
    return SystemCall(pid, 0.0, name, arguments, result, opened)


FILE = Node("file", 11, 1, 8192, b"o" * 8192, mode=0o644)
TREE = {"/": Node("directory", 1, 2, mode=0o755), "/a": FILE, "/b": Node("file", 12, 1, 1, b"b", mode=0o644)}


@pytest.mark.parametrize(
    ("maker", "between", "is_synced"),
    [
        ("flags=SIGCHLD", (), True),
        ("flags=CLONE_VM|CLONE_THREAD", (), True),
        ("flags=SIGCHLD", (call(2, "execve", '"\\x2f\\x78"'),), False),
    ],
)
def test_a_mapping_is_that_of_the_processes_that_have_its_address_space(
    maker: str, between: tuple[SystemCall, ...], is_synced: bool
) -> None:
    there = described(3, "/r/a")
    mapping = ("NULL", "8192", "PROT_READ|PROT_WRITE", "MAP_SHARED", there, "0")
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR", result=3, opened="/r/a"),
        call(1, "mapped", *mapping, result=0x7F0000),
        call(1, "store", there, escaped(b"n"), "1", "0", result=1),
        call(1, "clone", "child_stack=NULL", maker, result=2),
        *between,
        call(2, "msync", hex(0x7F0000), "8192", "MS_SYNC"),
    ]
    deeds = protocol(calls, "/r", TREE, TREE).deeds
    assert [type(one.operation) for one in deeds] == [ops.Write, *[ops.Msync] * is_synced]


@pytest.mark.parametrize(
    ("flags", "more", "is_open"),
    [
        ("O_RDWR", (), True),
        ("O_RDWR|O_CLOEXEC", (), False),
        ("O_RDWR", (call(1, "fcntl", described(3, "/r/a"), "F_SETFD", "FD_CLOEXEC"),), False),
        ("O_RDWR|O_CLOEXEC", (call(1, "fcntl", described(3, "/r/a"), "F_SETFD", "0"),), True),
        ("O_RDWR", (call(1, "close_range", "3", "4294967295", "CLOSE_RANGE_CLOEXEC"),), False),
    ],
)
def test_what_a_program_that_is_started_has_open_is_what_execve_leaves(
    flags: str, more: tuple[SystemCall, ...], is_open: bool
) -> None:
    """What it then reads with that number is of the file, or of a pipe that has the number now."""
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), flags, result=3, opened="/r/a"),
        call(1, "dup", described(3, "/r/a"), result=9),
        *more,
        call(1, "execve", escaped(b"/x")),
        call(1, "read", "0x3", "0x7ffc", "0x4", result=4),
        call(1, "write", described(9, "/r/a"), escaped(b"n"), "1", result=1),
    ]
    if "close_range" in [one.name for one in more]:
        calls[-1] = call(2, "write", described(9, "/r/a"), escaped(b"n"), "1", result=1)
        calls.insert(2, call(1, "clone", "child_stack=NULL", "flags=SIGCHLD", result=2))
    [write] = protocol(calls, "/r", TREE, TREE).deeds
    assert write.operation == ops.Write("/a", 4 if is_open else 0, 1)


def test_an_fsync_is_of_the_file_that_was_open_though_another_has_its_name_when_it_returns() -> None:
    """Another thread has rotated a log meanwhile: strace has the path as it was when the call began."""
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR", result=3, opened="/r/a"),
        call(2, "rename", escaped(b"/r/a"), escaped(b"/r/a.1")),
        call(2, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR|O_CREAT", "0644", result=4, opened="/r/a"),
        call(1, "fsync", described(3, "/r/a")),
        call(1, "write", described(3, "/r/a"), escaped(b"n"), "1", result=1),
    ]
    effects = protocol(calls, "/r", TREE, TREE)
    *_names, synced, written = effects.deeds
    assert effects.files[synced.file].inode == effects.files[written.file].inode == 11
    assert not effects.untold


def test_names_that_no_tree_shows_may_be_changed() -> None:
    effects = protocol([call(1, "chmod", escaped(b"/r/lost+found"), "0700")], "/r", TREE, TREE)
    assert not effects.untold and not effects.deeds


def test_a_file_without_a_name_in_the_top_directory_gets_one() -> None:
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r"), "O_RDWR|O_TMPFILE", "0600", result=3, opened="/r/#12"),
        call(1, "write", "3<" + escaped(b"/r/#12")[1:-1] + ">(deleted)", escaped(b"n"), "1", result=1),
        call(1, "linkat", "AT_FDCWD", escaped(b"/proc/self/fd/3"), "AT_FDCWD", escaped(b"/r/n"), "AT_SYMLINK_FOLLOW"),
    ]
    after = {**TREE, "/n": Node("file", 13, 1, 1, b"n", mode=0o600)}
    effects = protocol(calls, "/r", TREE, after)
    assert not effects.untold
    assert unlike(replayed("p", effects, TREE, {}).history, after) == ()


def test_a_link_to_what_a_symbolic_link_leads_to() -> None:
    before = {**TREE, "/l": Node("symlink", 14, 1, 0, b"", "a", mode=0o777)}
    linked = call(1, "linkat", "AT_FDCWD", escaped(b"/r/l"), "AT_FDCWD", escaped(b"/r/n"), "AT_SYMLINK_FOLLOW")
    effects = protocol([linked], "/r", before, {**before, "/n": FILE})
    assert [effects.files[one.file].inode for one in effects.deeds] == [11] and not effects.untold


def test_a_target_of_other_bytes_than_utf_8_is_followed() -> None:
    calls = [
        call(1, "mkdir", escaped(b"/r/caf\xe9"), "0755"),
        call(1, "symlink", escaped(b"caf\xe9"), escaped(b"/r/l")),
        call(1, "mkdir", escaped(b"/r/l/x"), "0755"),
    ]
    effects = protocol(calls, "/r", TREE, TREE)
    assert effects.deeds[-1].operation == ops.Mkdir("/caf\udce9/x")


@pytest.mark.parametrize("name", ["chmod", "truncate", "chown"])
def test_a_name_that_bob_does_not_know_is_named(name: str) -> None:
    more = {"chmod": ("0600",), "truncate": ("3",), "chown": ("1", "1")}[name]
    effects = protocol([call(1, name, escaped(b"/r/gone"), *more)], "/r", TREE, TREE)
    assert effects.untold == [f"{name} of /gone"]


def test_the_newest_way_to_change_a_mode_is_followed_and_one_without_any_permission() -> None:
    calls = [
        call(1, "fchmodat2", "AT_FDCWD", escaped(b"/r/a"), "0600", "AT_SYMLINK_NOFOLLOW"),
        call(1, "openat", "AT_FDCWD", escaped(b"/r/n"), "O_WRONLY|O_CREAT", "000", result=3, opened="/r/n"),
    ]
    changed, made = protocol(calls, "/r", TREE, TREE).deeds
    assert changed.operation == ops.Chmod("/a", 0o600)
    assert made.mode == 0


def test_the_directory_of_a_child_is_its_parents_also_for_what_is_never_synced() -> None:
    calls = [
        call(1, "chdir", escaped(b"d")),
        call(1, "fork", result=2),
        call(1, "chdir", escaped(b"/")),
        call(2, "openat", "AT_FDCWD", escaped(b"f"), "O_WRONLY|O_SYNC", result=3, opened="/r/d/f"),
        call(2, "write", described(3, "/r/d/f"), escaped(b"n"), "1", result=1),
        call(2, "write", described(1, "pipe:[7]"), escaped(b"k"), "1", result=1),
    ]
    assert [one.files for one in unsynced_at_outputs(calls, 7, "/r")] == [()]


def test_calls_on_files_elsewhere_are_counted() -> None:
    calls = [
        call(1, "write", described(1, "pipe:[7]"), escaped(b"k"), "1", result=1),
        call(1, "write", described(4, "/w/dev/null"), escaped(b"k"), "1", result=1),
        call(1, "write", described(5, "/w/tmp/log"), escaped(b"k"), "1", result=1),
        call(1, "write", described(3, "/w/r/a"), escaped(b"k"), "1", result=1),
        call(1, "fsync", described(6, "/w/r")),
        call(1, "rename", escaped(b"/tmp/x"), escaped(b"/r/a")),
        call(1, "chdir", escaped(b"/tmp")),
        call(1, "unlink", escaped(b"y")),
        SystemCall(1, 0.0, "unlink", (escaped(b"z"),), None),
    ]
    assert files_outside(calls, "/r", "/w") == ("/tmp/log", "/tmp/y")


def overlapping(*lines: tuple[SystemCall, int, int]) -> list[SystemCall]:
    """Calls, with the lines at which each began and had taken effect."""
    return [replace(one, begun=begun, done=done) for one, begun, done in sorted(lines, key=lambda line: line[2])]


@pytest.mark.parametrize(
    ("sync", "model", "place", "lost"),
    [
        (("fdatasync", described(3, "/r/a")), "ext4-o", 4096, b"o" * 5),
        (("fsync", described(3, "/r/a")), "ext3-j", 4096, b"o" * 5),
        (("sync",), "btrfs", 4096, b"o" * 5),
        (("fsync", described(3, "/r/a")), "ext3-w", 4096, b"o" * 5),
        (("fsync", described(3, "/r/a")), "ext3-w", 8192, b""),
        (("fdatasync", described(3, "/r/a")), "ext4-o", 8192, b""),
    ],
)
def test_a_sync_makes_nothing_durable_that_is_written_while_it_runs(
    sync: tuple[str, ...], model: str, place: int, lost: bytes
) -> None:
    """What was written before it began is there when it has returned."""
    name, *arguments = sync
    there, pipe = described(3, "/r/a"), described(1, "pipe:[7]")

    def done(begun: int) -> frozenset[bytes]:
        calls = overlapping(
            (call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR", result=3, opened="/r/a"), 0, 1),
            (call(1, "pwrite64", there, escaped(b"first"), "5", "0", result=5), 2, 2),
            (call(1, "pwrite64", there, escaped(b"after"), "5", str(place), result=5), 4, 4),
            (call(2, name, *arguments), begun, 5),
            (call(1, "write", pipe, escaped(b"ok"), "2", result=2), 6, 6),
        )
        again = replayed("p", protocol(calls, "/r", TREE, TREE), TREE, {4: b"ok"})
        promised = builtin(model).promised
        asked = graph_under(again.workload, workings(again.history), promised)
        tries = ModelStates(asked, promised, again.outputs, 1_000)
        found = [tries.nodes(state)["/a"].content for state in tries if state.output == b"ok"]
        assert tries.is_all
        return frozenset(content[:5] + content[place : place + 5] for content in found)

    assert {b"firstafter", b"first" + lost} <= done(begun=3)
    assert done(begun=5) == {b"firstafter"}


def test_a_mode_is_changed_by_way_of_an_open_file() -> None:
    """So does glibc where the kernel has no fchmodat2."""
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDONLY|O_NOFOLLOW|O_PATH", result=4, opened="/r/a"),
        call(1, "rename", escaped(b"/r/a"), escaped(b"/r/n")),
        call(1, "chmod", escaped(b"/proc/self/fd/4"), "0600"),
        call(1, "truncate", escaped(b"/proc/1/fd/4"), "3"),
        call(1, "unlink", escaped(b"/r/n")),
        call(1, "chown", escaped(b"/dev/fd/4"), "1", "1"),
    ]
    effects = protocol(calls, "/r", TREE, {"/": TREE["/"], "/b": TREE["/b"]})
    assert not effects.untold
    assert [effects.files[one.file].inode for one in effects.deeds] == [11] * 5
    assert [type(one.operation) for one in effects.deeds] == [
        ops.Rename,
        ops.Chmod,
        ops.Truncate,
        ops.Unlink,
        ops.Chown,
    ]


def test_names_below_an_open_directory_and_below_the_processs_own() -> None:
    before = {**TREE, "/d": Node("directory", 20, mode=0o755), "/d/f": Node("file", 21, 1, 0, b"", mode=0o644)}
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/d"), "O_RDONLY|O_DIRECTORY", result=4, opened="/r/d"),
        call(1, "chdir", escaped(b"/r/d")),
        call(1, "rename", escaped(b"../d"), escaped(b"../e")),
        call(1, "rename", escaped(b"f"), escaped(b"g")),
        call(1, "rename", escaped(b"/proc/self/fd/4/g"), escaped(b"/proc/self/cwd/h")),
    ]
    after = {**TREE, "/e": before["/d"], "/e/h": before["/d/f"]}
    effects = protocol(calls, "/r", before, after)
    assert not effects.untold
    assert unlike(replayed("p", effects, before, {}).history, after) == ()


def mapping(fd: str, protection: str = "PROT_READ|PROT_WRITE", at: int = 0x7F0000, name: str = "mapped") -> SystemCall:
    return call(1, name, "NULL", "4096", protection, "MAP_SHARED", fd, "0", result=at)


OPEN_A = call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR", result=3, opened="/r/a")
STORE = call(1, "store", described(3, "/r/a"), escaped(b"n"), "1", "0", result=1)


@pytest.mark.parametrize(
    ("calls", "is_synced"),
    [
        ((mapping(described(3, "/r/a")), STORE, call(1, "msync", "0x7f0000", "4096", "MS_SYNC")), True),
        (  # it has moved
            (
                mapping(described(3, "/r/a")),
                call(1, "mremap", "0x7f0000", "4096", "8192", "MREMAP_MAYMOVE", result=0x900000),
                STORE,
                call(1, "msync", "0x900000", "8192", "MS_SYNC"),
            ),
            True,
        ),
        (  # another file is where it was
            (
                mapping(described(3, "/r/a")),
                STORE,
                call(1, "munmap", "0x7f0000", "4096"),
                mapping(described(5, "/elsewhere"), name="mmap"),
                call(1, "msync", "0x7f0000", "4096", "MS_SYNC"),
            ),
            False,
        ),
        (  # the same, and nothing was unmapped
            (
                mapping(described(3, "/r/a")),
                STORE,
                mapping(described(5, "/elsewhere"), name="mmap"),
                call(1, "msync", "0x7f0000", "4096", "MS_SYNC"),
            ),
            False,
        ),
        (  # it can only be read
            (
                mapping(described(3, "/r/a"), "PROT_READ", name="mmap"),
                call(1, "pwrite64", described(3, "/r/a"), escaped(b"n"), "1", "0", result=1),
                call(1, "msync", "0x7f0000", "100", "MS_SYNC"),
            ),
            True,
        ),
    ],
)
def test_an_msync_is_of_what_is_mapped_there_now(calls: tuple[SystemCall, ...], is_synced: bool) -> None:
    effects = protocol([OPEN_A, *calls], "/r", TREE, TREE)
    assert [type(one.operation) for one in effects.deeds] == [ops.Write, *[ops.Msync] * is_synced]
    assert not effects.untold


def test_an_msync_of_a_mapping_that_was_not_seen_is_named() -> None:
    calls = [OPEN_A, mapping(described(3, "/r/a")), call(1, "msync", "0x500000", "4096", "MS_SYNC")]
    assert protocol(calls, "/r", TREE, TREE).untold == snapshot(["msync of a mapping that bob has not seen made"])


@pytest.mark.parametrize(
    ("more", "is_open"),
    [
        ((call(1, "ioctl", described(3, "/r/a"), "FIOCLEX"),), False),
        ((call(1, "ioctl", described(3, "/r/a"), "FIOCLEX"), call(1, "ioctl", described(3, "/r/a"), "FIONCLEX")), True),
        (
            (
                call(1, "ioctl", described(3, "/r/a"), "FIOCLEX"),
                call(1, "dup2", described(3, "/r/a"), "3", result=3),
            ),
            False,
        ),
    ],
)
@pytest.mark.parametrize("start", [("execve", escaped(b"/x")), ("execveat", "5", escaped(b""), "AT_EMPTY_PATH")])
def test_an_ioctl_says_what_execve_closes(more: tuple[SystemCall, ...], is_open: bool, start: tuple[str, ...]) -> None:
    calls = [
        OPEN_A,
        call(1, "dup", described(3, "/r/a"), result=9),
        *more,
        call(1, *start),
        call(1, "read", "0x3", "0x7ffc", "0x4", result=4),
        call(1, "write", described(9, "/r/a"), escaped(b"n"), "1", result=1),
    ]
    effects = protocol(calls, "/r", TREE, TREE)
    [write] = effects.deeds
    assert write.operation == ops.Write("/a", 4 if is_open else 0, 1) and not effects.untold


@pytest.mark.parametrize(
    "calls",
    [
        (call(1, "rename", escaped(b"/lnk/a"), escaped(b"/lnk/c")),),
        (call(1, "chdir", escaped(b"/lnk")), call(1, "unlink", escaped(b"a"))),
    ],
)
def test_a_name_through_a_link_that_bob_does_not_see_is_named(calls: tuple[SystemCall, ...]) -> None:
    opened = call(1, "openat", "AT_FDCWD", escaped(b"/lnk/a"), "O_RDWR", result=3, opened="/r/a")
    assert protocol([*calls, opened], "/r", TREE, TREE).untold
    assert protocol([opened, *calls], "/r", TREE, TREE).untold
    assert not protocol([opened, call(1, "unlink", escaped(b"/tmp/x"))], "/r", TREE, TREE).untold


def test_a_root_of_its_own_is_named() -> None:
    assert protocol([call(1, "chroot", escaped(b"/r"))], "/r", TREE, TREE).untold == ["chroot"]


def test_what_is_appended_to_a_file_without_a_name_goes_to_its_end() -> None:
    there = "3<" + escaped(b"/r/#12")[1:-1] + ">(deleted)"
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r"), "O_RDWR|O_APPEND|O_TMPFILE", "0600", result=3, opened="/r/#12"),
        call(1, "write", there, escaped(b"hello"), "5", result=5),
        call(1, "lseek", there, "0", "SEEK_SET", result=0),
        call(1, "write", there, escaped(b"world"), "5", result=5),
        call(1, "linkat", there, escaped(b""), "AT_FDCWD", escaped(b"/r/n"), "AT_EMPTY_PATH"),
    ]
    after = {**TREE, "/n": Node("file", 13, 1, 10, b"helloworld", mode=0o600)}
    effects = protocol(calls, "/r", TREE, after)
    assert not effects.untold
    assert unlike(replayed("p", effects, TREE, {}).history, after) == ()


def test_what_goes_through_a_fifo_is_no_change() -> None:
    before = {**TREE, "/p": Node("other", 15, 1, 0, b"", "10000 0", mode=0o644)}
    calls = [
        call(1, "openat", "AT_FDCWD", escaped(b"/r/p"), "O_WRONLY", result=3, opened="/r/p"),
        call(1, "write", described(3, "/r/p"), escaped(b"hello"), "5", result=5),
    ]
    effects = protocol(calls, "/r", before, before)
    assert not effects.deeds and not effects.untold


@pytest.mark.parametrize(
    ("calls", "named"),
    [
        ((call(1, "write", described(3, "/r/a"), escaped(b"n"), "1", result=1),), ("/a",)),
        (
            (
                call(1, "write", described(3, "/r/a"), escaped(b"n"), "1", result=1),
                call(1, "syncfs", described(5, "/tmp")),
            ),
            ("/a",),
        ),
        (
            (
                call(1, "write", described(3, "/r/a"), escaped(b"n"), "1", result=1),
                call(1, "syncfs", described(5, "/r")),
            ),
            (),
        ),
        (  # another open file has O_DSYNC
            (
                call(1, "openat", "AT_FDCWD", escaped(b"/r/a"), "O_RDWR|O_DSYNC", result=4, opened="/r/a"),
                call(1, "write", described(3, "/r/a"), escaped(b"n"), "1", result=1),
            ),
            ("/a",),
        ),
        ((call(1, "truncate", escaped(b"/r/a"), "1"),), ("/a",)),
        ((call(1, "pwritev2", described(3, "/r/a"), "[]", "1", "0", "RWF_DSYNC", result=1),), ()),
        (
            (call(1, "copy_file_range", described(5, "/x"), "NULL", described(3, "/r/a"), "NULL", "9", "0", result=9),),
            ("/a",),
        ),
    ],
)
def test_what_is_not_synced_when_the_program_tells(calls: tuple[SystemCall, ...], named: tuple[str, ...]) -> None:
    told = call(1, "write", described(1, "pipe:[7]"), escaped(b"k"), "1", result=1)
    assert [*unsynced_at_outputs([OPEN_A, *calls, told], 7, "/r")][-1].files == named


def test_a_mask_is_taken_from_the_modes_that_a_process_makes_files_with() -> None:
    calls = [
        call(1, "umask", "077", result=0o22),
        call(1, "clone", "child_stack=NULL", "flags=SIGCHLD", result=2),
        call(2, "umask", "0", result=0o77),
        call(1, "mkdir", escaped(b"/r/d"), "0777"),
        call(2, "openat", "AT_FDCWD", escaped(b"/r/n"), "O_WRONLY|O_CREAT", "0666", result=3, opened="/r/n"),
    ]
    after = {**TREE, "/d": Node("directory", 20, mode=0o700), "/n": Node("file", 21, 1, 0, b"", mode=0o640)}
    effects = protocol(calls, "/r", TREE, after)
    assert [one.mode for one in effects.deeds] == [0o700, 0o666]
    assert other_modes(replayed("p", effects, TREE, {}).history, after) == ("/n",)
