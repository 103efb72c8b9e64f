"""A witness for people without bob, and for other tools: its image with a script, a probe file, a case for xfstests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec import structs

import samples_of_runs as samples
from bob.catalogue.finer_rows import durability_rows
from bob.catalogue.probe_files import load, shipped_probes
from bob.claim.mounting import Mountable
from bob.claim.property.of_property import OfProperty
from bob.claim.property.rules import Question, questions
from bob.errors import StoreError, UsageError
from bob.progress import Silent
from bob.run import export
from bob.story.timeline import CallEvent, Fate
from bob.subject import cluster_of, configuration
from bob.trace.model import SECTOR_BYTES
from bob.witness import document as witness
from bob.witness.document import Witness
from bob.witness.keep import EACH_DISK, differing, keep, text
from bob.witness.probe_file import to_probe
from bob.witness.shell import translated
from bob.witness.xfstests import CacheLoss, loss, to_case
from bob.workload.language import GRAMMAR, parse, write_one
from bob.workload.operations import At, Finish, Workload
from bob.workload.simulation import simulate
from mediums import image_of
from witness.test_witness import document, stored
from wording import line_with, text_with
from workload.generators import random_workload


def test_the_image_is_the_crash_state(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    image, script = keep(read, tmp_path / "kept")
    assert image.name == "crash.img"
    wanted = bytearray(image_of(samples.BASE))
    for sector, data in read.runs:
        wanted[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    assert image.read_bytes() == bytes(wanted)
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_the_script_says_what_it_shows(tmp_path: Path) -> None:
    read = witness.read(stored(tmp_path, document()))
    told = text(read)
    assert line_with(told, read.evidence, "Found") == snapshot(
        "# Found after the crash: operation 2 (create /n) survived; nothing of operation 1 (write /a 0 512), issued earlier, is there (bytes 0 to 512 of /a: initial data (512 B) instead of the data of operation 1)"
    )
    assert "#   1 write /a 0 512" in told
    assert 'mount -t ext4 -o loop,data=ordered "$copy/crash.img" "$mnt"' in told
    for line in told.splitlines():
        assert not line.startswith("# ") or "$(" not in line


def test_the_script_shows_the_bytes_that_differ(tmp_path: Path) -> None:
    """Run on the files that the witness found, with the real od."""
    read = witness.read(stored(tmp_path, document()))
    assert read.found is not None and read.found.tree is not None
    far = bytes(2000) + b"lost" + bytes(500)
    tree = {"/a": replace(read.found.tree["/a"], content=read.found.tree["/a"].content[:100])}
    asked = Workload("asked", (), tuple(parse("write /a 0 512; create /b")))
    shown = replace(read, work=asked, found=replace(read.found, tree=tree))
    lines = text(shown).splitlines()
    part = lines[lines.index("differs() {") : next(n for n, line in enumerate(lines) if line.startswith("find "))]
    (tmp_path / "a").write_bytes(tree["/a"].content)
    said = subprocess.run(
        ["sh", "-euc", "\n".join(part)],
        env={"mnt": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith("== /a: bytes 0 to ") and said.stdout.endswith(
        "== /a: ends at byte 100, not at 512\n"
    )
    assert differing(far, bytes(len(far))) == [(2000, 2004)]


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_ranges_that_differ(one: bytes, other: bytes) -> None:
    ranges = differing(one, other)
    differ = {at for at in range(min(len(one), len(other))) if one[at] != other[at]}
    inside = {at for start, end in ranges for at in range(start, end)}
    assert differ <= inside
    assert all({start, end - 1} <= differ for start, end in ranges)
    assert all(later - earlier >= 16 for (_start, earlier), (later, _end) in pairwise(ranges))
    assert all(len(set(range(at, at + 17)) & differ) for start, end in ranges for at in range(start, end - 16))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as refused:
        keep(witness.read(stored(tmp_path, document())), tmp_path / "file" / "kept")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("cannot write TMP/file/kept: Not a directory")


# On layers: each disk has an image of its own, and the script assembles them with the programs that people have

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" | sed "s|$TMPDIR/[^ ]*/|COPY/|g; s|$TMPDIR/[^ ]*|MNT|g" >> "$CALLS"
case "$(basename "$0") $*" in
    "losetup --find"*) echo "/dev/loop$(grep -c 'losetup --find' "$CALLS")" ;;
    "dmsetup create"*) sed 's/^/  /' >> "$CALLS" ;;
esac
"""


def on_layers(folder: Path, stack: str, disks: int) -> Witness:
    """A witness whose disk is cut into ``disks`` of one length."""
    read = witness.read(stored(folder, document()))
    each = read.base.length // disks
    assert each * disks == read.base.length and each % SECTOR_BYTES == 0
    made = configuration("ext4", mount_options="data=ordered", on=stack)
    assert len(made.disks) == disks
    return replace(read, configuration=made, base=replace(read.base, disks=(each,) * disks))


@pytest.mark.parametrize(("stack", "disks"), [("linear", 2), ("raid1", 2), ("striped,raid1", 4)])
def test_each_disk_is_an_image_and_the_script_assembles_them(tmp_path: Path, stack: str, disks: int) -> None:
    read = on_layers(tmp_path, stack, disks)
    *images, script = keep(read, tmp_path / "kept")
    assert sorted(tmp_path.joinpath("kept").iterdir()) == sorted([*images, script])
    wanted = bytearray(image_of(samples.BASE))
    for sector, data in read.runs:
        wanted[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(data)] = data
    assert b"".join(image.read_bytes() for image in images) == bytes(wanted)
    programs, scratch, calls = tmp_path / "bin", tmp_path / "scratch", tmp_path / "calls"
    programs.mkdir(), scratch.mkdir()
    for name in ("losetup", "dmsetup", "mdadm", "mount", "umount", "readlink", "find", "ls"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    # There is no array here, in whose files the script could write.
    text = script.read_text().replace("/sys/block/", f"{scratch}/")
    (scratch / "md").mkdir()
    path = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TMPDIR": str(scratch), "CALLS": str(calls)}
    subprocess.run(["sh", "-c", text, str(script)], check=True, env=environment, capture_output=True)
    made = [line for line in calls.read_text().splitlines() if not line.startswith(("ls", "find", "readlink", "mount"))]
    begun = [line.split()[-1] for line in made if line.startswith(("losetup --find", "dmsetup create"))]
    assert len([name for name in begun if name.endswith(".img")]) == disks
    # All that was begun is ended, the last first.
    opened = [line for line in made if "--find" in line or " create " in line or "--assemble" in line]
    closed = made[len(made) - len(opened) :]
    assert [line.split()[0] for line in closed] == [line.split()[0] for line in reversed(opened)]
    assert made == SCRIPTS[stack]
    assert [path.read_text() for path in (scratch / "md").iterdir()] == ["frozen\n"] * ("raid1" in stack)


def test_one_disk_below_a_layer_has_the_same_name_in_the_folder_and_in_the_script(tmp_path: Path) -> None:
    read = on_layers(tmp_path, "delay", 1)
    image, script = keep(read, tmp_path / "kept")
    assert (image.name, f"$copy/{image.name}" in script.read_text()) == ("crash.img", True)


def test_each_node_of_a_cluster_is_mounted_at_its_own_place(tmp_path: Path) -> None:
    read = on_layers(tmp_path, "linear", 2)
    each = read.base.disks[0]
    nodes = tuple(replace(configuration(fs), sizes=(each,)) for fs in ("ext4", "ext2"))
    read = replace(read, configuration=cluster_of(nodes))
    *images, script = keep(read, tmp_path / "kept")
    assert [image.name for image in images] == ["crash-0.img", "crash-1.img"]
    told = script.read_text()
    assert 'mount -t ext4 -o loop "$copy/crash-0.img" "$mnt/n0"' in told
    assert 'mount -t ext2 -o loop "$copy/crash-1.img" "$mnt/n1"' in told
    assert told.index("e2fsck") < told.index("mount -t ext2")  # as a boot would
    subprocess.run(["sh", "-n", str(script)], check=True)


SCRIPTS = {
    "linear": snapshot(
        [
            "losetup --find --show COPY/crash-0.img",
            "losetup --find --show COPY/crash-1.img",
            "dmsetup create bob-0-top",
            "  0 32768 linear /dev/loop1 0",
            "  32768 32768 linear /dev/loop2 0",
            "umount MNT",
            "dmsetup remove --retry bob-0-top",
            "losetup -d /dev/loop2",
            "losetup -d /dev/loop1",
        ]
    ),
    "raid1": snapshot(
        [
            "losetup --find --show COPY/crash-0.img",
            "losetup --find --show COPY/crash-1.img",
            "mdadm --assemble --run /dev/md/bob-0-array /dev/loop1 /dev/loop2",
            "umount MNT",
            "mdadm --stop /dev/md/bob-0-array",
            "losetup -d /dev/loop2",
            "losetup -d /dev/loop1",
        ]
    ),
    "striped,raid1": snapshot(
        [
            "losetup --find --show COPY/crash-0.img",
            "losetup --find --show COPY/crash-1.img",
            "losetup --find --show COPY/crash-2.img",
            "losetup --find --show COPY/crash-3.img",
            "mdadm --assemble --run /dev/md/bob-0-array /dev/loop1 /dev/loop2",
            "mdadm --assemble --run /dev/md/bob-1-array /dev/loop3 /dev/loop4",
            "dmsetup create bob-2-top",
            "  0 65536 striped 2 128 /dev/md/bob-0-array 0 /dev/md/bob-1-array 0",
            "umount MNT",
            "dmsetup remove --retry bob-2-top",
            "mdadm --stop /dev/md/bob-1-array",
            "mdadm --stop /dev/md/bob-0-array",
            "losetup -d /dev/loop4",
            "losetup -d /dev/loop3",
            "losetup -d /dev/loop2",
            "losetup -d /dev/loop1",
        ]
    ),
}


def test_the_script_assembles_what_is_left_of_an_array(tmp_path: Path) -> None:
    read = on_layers(tmp_path, "raid1", 2)
    read = replace(read, configuration=replace(read.configuration, missing=(0,)))
    text = keep(read, tmp_path / "kept")[-1].read_text()
    assert "crash-0.img)" not in text and "device0" not in text
    assert "mdadm --assemble --run /dev/md/bob-0-array $device1\n" in text
    assert "--without-disk 0" in to_probe(read)


def test_on_layers_there_is_no_case_for_xfstests_and_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = on_layers(tmp_path, "linear", 2)
    with pytest.raises(UsageError) as refused:
        to_case(read, "900")
    assert refused.value.message == snapshot("the witness is on layers, and a case of xfstests has one disk")
    monkeypatch.setattr(export, "read", lambda _path: read)
    with pytest.raises(UsageError) as refused:
        export.export(Path("w.json"), image=None, any_kernel=False, connect=None, progress=Silent())
    assert refused.value.message == snapshot("the witness w.json is on layers, and a log is of one disk")
    assert refused.value.hint == EACH_DISK


def test_the_layers_of_a_witness_are_options_of_a_probe(tmp_path: Path) -> None:
    read = on_layers(tmp_path, "striped,raid1", 4)
    assert "--stack striped,raid1" in to_probe(read)


# A probe file

NATURAL = Finish("natural", natural=True)
SETUP = "mkdir /d; write /d/f 0 8192; write /d/g 0 4096; setxattr /d/f user.y 9"
RULES = [probe.property for probe in shipped_probes()]


def found(folder: Path, workload: Workload, prop: Any, question: Question, **more: Any) -> Witness:
    """A witness of ``workload``, whose crash state is made up."""
    made = witness.read(stored(folder, document()))
    return replace(made, work=workload, claim=OfProperty(prop.name, question, prop), **more)


def asked(seed: int, at: At = At.ANY) -> Iterator[tuple[Workload, Any, Question]]:
    """A random workload with what the shipped properties ask of it, or those of durability."""
    workload = random_workload(Random(seed))
    if at is At.END:
        workload = replace(workload, operations=(*workload.operations, *parse("sync")), at=at)
    history = simulate(workload)[0]
    for prop in RULES if at is At.ANY else [*durability_rows(), RULES[-1]]:
        for question in questions(prop, history)[:1]:
            yield workload, prop, question


@pytest.mark.parametrize("at", At)
def test_a_probe_file_is_read_as_what_was_asked(tmp_path: Path, at: At) -> None:
    tried = 0
    for seed in range(12):
        for workload, prop, question in asked(seed, at):
            file = tmp_path / "found.toml"
            file.write_text(to_probe(found(tmp_path, workload, prop, question)))
            probe = load(file)
            assert probe.workloads == (workload,)
            assert replace(probe.property, name=prop.name) == prop
            assert probe.property.name == "found-" + prop.name.replace(".", "-")
            tried += 1
    assert tried > 12


@pytest.mark.parametrize(
    "finish",
    [NATURAL, Finish("natural 2.5", natural=True, phase=2.5), Finish("sync", parse("sync"))],
)
def test_names_and_finishes_are_those_of_the_workload(tmp_path: Path, finish: Finish) -> None:
    operations = parse("""create '/d/a "b" \\c'; append '/d/ä' 512; setxattr /d/f 'user.x y' 3""")
    workload = Workload('a "name"', parse(SETUP), operations, finish)
    [directory_op] = [prop for prop in RULES if prop.name == "directory-op"]
    file = tmp_path / "found.toml"
    file.write_text(to_probe(found(tmp_path, workload, directory_op, Question((1,)))))
    assert load(file).workloads == (workload,)


def test_what_no_probe_file_can_say_is_refused(tmp_path: Path) -> None:
    [directory_op] = [prop for prop in RULES if prop.name == "directory-op"]
    ranged = Workload("w", (), parse("create '/f{1..3}'"), NATURAL)
    with pytest.raises(UsageError) as refused:
        to_probe(found(tmp_path, ranged, directory_op, Question((1,))))
    assert str(refused.value) == snapshot("a probe file cannot express this workload: bob would read another one")
    made = witness.read(stored(tmp_path, document("unmountable")))
    assert isinstance(made.claim, Mountable)
    with pytest.raises(UsageError) as refused:
        to_probe(made)
    assert str(refused.value) == snapshot(
        "a probe file needs a property, and this witness shows a crash state that does not mount"
    )


# A case for xfstests

XFS_IO = """\
import mmap, os, sys
flags, path, commands = os.O_RDWR, sys.argv[-1], []
words = sys.argv[1:-1]
while words:
    word = words.pop(0)
    flags |= {"-f": os.O_CREAT, "-t": os.O_TRUNC}.get(word, 0)
    commands += [words.pop(0).split()] if word == "-c" else []
fd = os.open(path, os.O_RDONLY if os.path.isdir(path) else flags, 0o644)
for verb, *rest in commands:
    numbers = [int(one) for one in rest[-2:] if one.isdigit()]
    fill = bytes([int(rest[rest.index("-S") + 1], 16)]) if "-S" in rest else b""
    if verb in ("pwrite", "mwrite"):
        assert verb == "pwrite" or os.fstat(fd).st_size >= sum(numbers)
        os.pwrite(fd, fill * numbers[1], numbers[0])
    elif verb == "truncate":
        os.ftruncate(fd, int(rest[0]))
    elif verb in ("falloc", "fpunch", "fzero"):
        size = os.fstat(fd).st_size
        if verb != "falloc":
            stop = sum(numbers) if verb == "fzero" and "-k" not in rest else min(sum(numbers), size)
            os.pwrite(fd, bytes(max(0, stop - numbers[0])), numbers[0])
        elif "-k" not in rest:
            os.ftruncate(fd, max(size, sum(numbers)))
    else:
        assert verb in ("fsync", "fdatasync", "syncfs", "sync_range", "mmap", "munmap", "msync"), verb
"""
RENAMEAT2 = """\
import os, sys
flag, old, new = sys.argv[1:]
if flag == "-n":
    assert not os.path.lexists(new)
    os.rename(old, new)
else:
    os.rename(old, old + ".tmp"), os.rename(new, old), os.rename(old + ".tmp", new)
"""
HELPERS = """\
seq=$(basename $0); seqres=$tmp.res; status=1; here=$HERE
_begin_fstest() { echo "QA output created by $seq"; trap "_cleanup; exit \\$status" 0; }
_notrun() { echo "$*"; exit; }
for one in _require_scratch _require_dm_target _require_xfs_io_command _require_attrs _require_odirect _init_flakey \
        _require_renameat2 _require_hardlinks _require_symlinks _scratch_mkfs _scratch_mount _scratch_unmount \
        _cleanup_flakey _load_flakey_table _require_log_writes _scratch_mkfs_sized _log_writes_init _log_writes_mount \
        _log_writes_mark _log_writes_unmount _log_writes_remove _log_writes_cleanup dd; do
    eval "$one() { echo $one \\"\\$@\\" >> $tmp.calls; }"
done
_flakey_drop_and_remount() { sh -c "cd $SCRATCH_MNT && $DAMAGE"; }
_log_writes_replay_log() { sh -c "cd $SCRATCH_MNT && $DAMAGE"; }
"""


class Bench:
    """What stands in the place of xfstests: a directory is the scratch device, and a crash does some damage to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("common", "src", "scratch", "bin"):
            (folder / name).mkdir()
        for name in ("preamble", "filter", "attr", "renameat2", "dmflakey", "dmlogwrites"):
            (folder / "common" / name).write_text(HELPERS if name == "preamble" else "")
        for path, program in (("bin/xfs_io", XFS_IO), ("src/renameat2", RENAMEAT2), ("bin/setfattr", "")):
            (folder / path).write_text(f"#!/usr/bin/env python3\n{program}")
            (folder / path).chmod(0o755)
        self.scratch = folder / "scratch"

    def run(self, script: str, damage: str = "true") -> str:
        """What a script prints."""
        (self._folder / "900").write_text(script)
        environment = {
            "SCRATCH_MNT": str(self.scratch), "tmp": str(self._folder / "t"), "HERE": str(self._folder),
            "XFS_IO_PROG": str(self._folder / "bin/xfs_io"), "SETFATTR_PROG": str(self._folder / "bin/setfattr"),
            "GETFATTR_PROG": "true", "DAMAGE": damage, "PATH": os.environ["PATH"], "FSTYP": "ext4",
        }  # fmt: skip
        done = subprocess.run(
            ["bash", str(self._folder / "900")], cwd=self._folder, env=environment, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    def shell(self, lines: list[str]) -> str:
        """What lines print, with the helpers there."""
        return self.run("\n".join([". ./common/preamble", *lines]))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "bench").mkdir()
    return Bench(tmp_path / "bench")


def test_every_operation_of_the_language_has_its_words_or_is_refused_by_its_name() -> None:
    samples_of_verbs = {
        "write": "write /f 0 512", "append": "append /f 512", "truncate": "truncate /f 9", "rename": "rename /f /n",
        "fallocate": "fallocate /f 0 9 punch", "link": "link /f /n", "symlink": "symlink x /n", "unlink": "unlink /f",
        "create": "create /n", "mkdir": "mkdir /n", "rmdir": "rmdir /d", "setxattr": "setxattr /f user.x 3",
        "removexattr": "removexattr /f user.y", "chmod": "chmod /f 600", "chown": "chown /f 1:2", "fsync": "fsync /f",
        "fdatasync": "fdatasync /f", "sync_file_range": "sync_file_range /f 0 9", "msync": "msync /f", "sync": "sync",
        "syncfs": "syncfs", "sleep": "sleep 0.5", "acknowledge": "acknowledge done",
        "utimes": "utimes /f 1000000000", "copy_file_range": "copy_file_range /f /n 0 9", "reflink": "reflink /f /n",
    }  # fmt: skip
    refused = []
    for verb in GRAMMAR:
        if verb not in samples_of_verbs:
            refused.append(verb)
            continue
        made = Workload("w", parse("write /f 0 512; setxattr /f user.y 1; mkdir /d"), parse(samples_of_verbs[verb]))
        [line] = translated(simulate(made)[2])
        assert line
    kernel = ["writeback", "writeback_metadata", "commit"]  # moments of the kernel, which no shell's command makes
    assert refused == ["mknod", "open", "tmpfile", "close", *kernel], "give a new operation its words, or refuse it"
    for line in ("write f 0 9", "link f /n", "copy_file_range f /n 0 9", "fallocate f 0 4096 insert"):
        made = Workload("w", parse("write /f 0 8192"), parse(f"open /f as f; {line}"))
        with pytest.raises(UsageError, match="bob cannot write the operation"):
            list(translated(simulate(made)[2][1:]))


def test_an_operation_without_words_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from bob.witness import shell
    from bob.workload import operations as ops

    monkeypatch.delitem(shell._WORDS, ops.Mkdir)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as refused:
        list(translated(simulate(Workload("w", (), parse("mkdir /n")))[2]))
    assert text_with(str(refused.value), "mkdir") == snapshot("bob cannot write the operation 'mkdir' for xfstests")


EVERY = parse(
    "truncate /d/f 9000; append /d/f 4096 trunc; write /d/f 100 50 mmap;"
    "fallocate /d/g 512 1024 punch; fallocate /d/g 4000 200 zero;"
    "fallocate /d/g 4100 200 zero-keep; fallocate /d/g 5000 9 keep; fallocate /d/g 5000 9; truncate /d/g 6000;"
    "create /x; rename /x /y noreplace; rename /y /d/g exchange; chmod /y 600; write /d/f 0 512 sync; msync /d/f"
)


def is_sayable(workload: Workload) -> bool:
    """Whether it has words, and a stand-in here: no shell copies ranges, or moves them, on any file system."""
    verbs = {write_one(one).split()[0] for one in workload.operations}
    try:
        list(translated(simulate(workload)[2]))
    except UsageError:
        return False
    return not verbs & {"copy_file_range", "reflink"}


SAYABLE = [one for seed in range(40) if is_sayable(one := random_workload(Random(seed), most=8, shifting=False))]


@pytest.mark.parametrize("workload", [Workload("every", parse(SETUP), EVERY), *SAYABLE[:9]])
def test_what_the_lines_do_is_what_the_workload_does(bench: Bench, workload: Workload) -> None:
    """Names, kinds, sizes, links and holes; the data is told by its fill."""
    history, setup, performed = simulate(workload)
    if any(
        one.operation.old in step.names and step.names[one.operation.old] == step.names.get(one.operation.new)
        for one, step in zip(performed, history.steps, strict=False)
        if hasattr(one.operation, "replacing")
    ):
        pytest.skip("it renames a file to another name of itself")
    told = bench.shell([*translated(setup), *translated(performed)])
    assert told == "", told
    last = history.steps[-1]
    there = {"/" + str(path.relative_to(bench.scratch)): path for path in bench.scratch.rglob("*")}
    assert there.keys() == last.names.keys() - {"/"}
    for name, path in there.items():
        thing = last.names[name]
        kind = "symlink" if path.is_symlink() else "directory" if path.is_dir() else "file"
        assert kind == history.things[thing].kind.value
        if kind != "file":
            continue
        inode, content = last.inodes[thing], path.read_bytes()
        assert (len(content), path.stat().st_nlink) == (len(inode.content), inode.links)
        assert [not byte for byte in content] == [not byte for byte in inode.content]
        assert path.stat().st_mode & 0o777 == inode.mode


ROWS = {prop.name: prop for prop in durability_rows()}


def case_of(tmp_path: Path, text: str, row: str, number: int, **more: Any) -> str:
    workload = Workload(text, parse(SETUP), parse(text), NATURAL, At.END)
    question = Question((number,), returned=len(workload.operations)) if number else Question((), beside=True)
    prop = RULES[-1] if row == "collateral" else ROWS[row]
    return to_case(found(tmp_path, workload, prop, question, **more), "900").script


@pytest.mark.parametrize(
    ("text", "row", "number", "harmless", "damage"),
    [
        ("append /d/f 4096; fsync /d/f", "fsync-file.size", 1, "rm d/g", "truncate -s 8192 d/f"),
        ("write /d/f 0 99; fsync /d/f", "fsync-file.data", 1, "chmod 600 d/f", "echo x > d/f"),
        ("create /d/n; fsync /d/n", "fsync-file.entry", 1, "truncate -s 9 d/n", "rm d/n"),
        ("rename /d/f /d/n; sync", "sync.names", 1, "truncate -s 9 d/n", "ln d/n d/f"),
        ("rename /d/f /d/g; sync", "sync.names", 1, "truncate -s 9 d/g", "cp d/g x; mv x d/g"),
        ("unlink /d/g; sync", "sync.names", 1, "rm d/f", "touch d/g"),
        ("link /d/f /d/n; sync", "sync.names", 1, "rm d/f", "cp d/n x; mv x d/n"),
        ("symlink f /d/n; sync", "sync.names", 1, "rm d/f", "ln -sfn g d/n"),
        ("mkdir /d/n; sync", "sync.entry", 1, "touch d/n/x", "rmdir d/n; touch d/n"),
        ("chmod /d/f 600; sync", "sync.attributes", 1, "rm d/g", "chmod 640 d/f"),
        ("append /d/f 9; rename /d/f /n; sync", "sync.size", 1, "mv n d/f", "truncate -s 8192 n"),
        ("fallocate /d/f 8000 500 punch; fsync /d/f", "collateral", 0, "chmod 600 $PWD", "truncate -s 9000 d/f"),
        ("append /d/f 9; fsync /d/f", "collateral", 0, "touch new", "rm d/g"),
        ("append /d/f 9; fsync /d/f", "collateral", 0, "chmod 600 d", "chmod 600 d/g"),
    ],
)
def test_a_case_is_silent_where_all_that_was_promised_is_there_and_not_where_something_is_lost(
    tmp_path: Path, bench: Bench, text: str, row: str, number: int, harmless: str, damage: str
) -> None:
    golden = "QA output created by 900\nSilence is golden\n"
    for all_lost in (None, True) if row == "sync.entry" else (None,):
        script = case_of(tmp_path, text, row, number, all_lost=all_lost)
        assert ("dmlogwrites" in script) != ("dmflakey" in script)
        for what, is_silent in (("true", True), (harmless, True), (damage, False)):
            subprocess.run(["rm", "-rf", *bench.scratch.iterdir()], check=True)
            told = bench.run(script, what)
            assert (told == golden) is is_silent, f"{what}: {told}"


@pytest.mark.parametrize("seed", range(8))
def test_a_script_is_one(tmp_path: Path, seed: int) -> None:
    for workload, prop, question in asked(seed, At.END):
        try:
            case = to_case(found(tmp_path, workload, prop, question), "900")
        except UsageError as refused:
            assert "xfstests" in refused.message or "mv would" in refused.message
            continue
        done = subprocess.run(["bash", "-n"], input=case.script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
        for number, operation in enumerate(workload.operations, start=1):
            assert f"# {number}. {write_one(operation)}"[:60] in case.script


def test_what_the_crash_has_lost_decides_how_the_case_crashes(tmp_path: Path) -> None:
    made = witness.read(stored(tmp_path, document()))
    line = made.timeline

    def with_fates(*fates: Fate, **more: Any) -> Witness:
        events = tuple(
            structs.replace(one, fate=fate)
            for one, fate in zip(
                [event for event in line.writes if event.fate is not Fate.DURABLE], fates, strict=False
            )
        )
        returned = CallEvent(seconds=0.0, end=9.0, number=1)
        return replace(made, timeline=replace(line, events=(returned, *events)), **more)

    assert loss(with_fates(Fate.KEPT, Fate.DURABLE)) is CacheLoss.NOTHING
    assert loss(with_fates(Fate.LOST, Fate.LOST)) is CacheLoss.ALL
    assert loss(with_fates(Fate.LOST, Fate.KEPT)) is CacheLoss.SOME
    assert loss(with_fates(Fate.TORN, Fate.LOST)) is CacheLoss.SOME
    assert loss(with_fates(Fate.LOST, Fate.KEPT, all_lost=True)) is CacheLoss.ALL
    assert loss(with_fates(Fate.LOST, Fate.KEPT, all_lost=False)) is CacheLoss.SOME
    writes = with_fates(Fate.LOST, Fate.LOST).timeline.writes
    sent_later = replace(line, events=(CallEvent(seconds=0.0, end=0.1, number=1), *writes))
    assert loss(replace(made, timeline=sent_later)) is CacheLoss.NOTHING, "the disk was sent nothing before the return"


@pytest.mark.parametrize(
    ("text", "row", "number", "why"),
    [
        (
            "create /n; rename /n /m; sync",
            "sync.entry",
            1,
            snapshot("bob is not sure what xfstests would have to check: operation 2 changes the name /n again"),
        ),
        (
            "create /d/n; unlink /d/n; sync",
            "sync.entry",
            1,
            snapshot("bob is not sure what xfstests would have to check: operation 2 changes the name /d/n again"),
        ),
        (
            "link /d/f /n; rename /d/f /n; sync",
            "sync.names",
            1,
            snapshot("operation 2 renames a file to another name of the same file; mv would remove one of the names"),
        ),
        (
            "append /d/f 9; write /d/f 0 9; msync /d/f",
            "msync.data",
            2,
            snapshot(
                "bob is not sure what xfstests would have to check: operation 1 changes the same file, and the call does not promise that change"
            ),
        ),
    ],
)
def test_where_bob_is_not_sure_what_is_to_be_there_it_says_so(
    tmp_path: Path, text: str, row: str, number: int, why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        case_of(tmp_path, text, row, number)
    assert str(refused.value) == why


def test_options_are_those_of_the_configuration(tmp_path: Path) -> None:
    script = case_of(tmp_path, "append /d/f 9; fsync /d/f", "fsync-file.size", 1)
    assert """export MOUNT_OPTIONS="$MOUNT_OPTIONS "'-o data=ordered'""" in script
    assert line_with(script, "ext4-ordered") == snapshot(
        "# bob found it on ext4-ordered, Linux 6.1.0-56-amd64: operation 2 (create /n)"
    )


@pytest.mark.parametrize("fstyp", ["ext4", "xfs"])
def test_xfstests_know_a_file_system_by_its_driver(tmp_path: Path, bench: Bench, fstyp: str) -> None:
    """bob's ext4-nojournal is for them an ext4, which mkfs makes otherwise."""
    made = configuration("ext4-nojournal", mkfs_options="-I 256")
    script = case_of(tmp_path, "append /d/f 9; fsync /d/f", "fsync-file.size", 1, configuration=made)
    assert "a boot runs before the mount: `e2fsck.static -fy DEVICE`" in " ".join(script.replace("# ", "").split())
    guard = [line for line in script.splitlines() if "FSTYP" in line or "MKFS_OPTIONS=" in line]
    said = bench.shell(
        ['_notrun() { echo "not run: $1"; exit; }', f"FSTYP={fstyp}", *guard, "printf '<%s>' $MKFS_OPTIONS"]
    )
    assert said == ("<-O><^has_journal><-I><256>" if fstyp == "ext4" else "not run: its options belong to ext4\n")
