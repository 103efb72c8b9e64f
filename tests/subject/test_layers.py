"""Layers: shipped ones are whole, layers make trees, and an error names a mistake in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from bob.agent.inside import late_disk
from bob.agent.inside.devices import ARRAYS
from bob.agent.inside.layer_commands import MOST_ARRAYS
from bob.catalogue.request import ProbeRequest
from bob.errors import UsageError
from bob.schema import decode, encode
from bob.subject import MIB, configuration, layers, load_set, promises, stack
from bob.subject.layer import MOST_DISKS, MOST_LAYERS, evaluated
from bob.subject.subject import ConfigurationDocument
from wording import text_with

SHIPPED = Path(__file__).parents[2] / "bob/subject/layers"
SECTORS = 32 * MIB // 512


@pytest.mark.parametrize("name", layers())
def test_every_layer_is_declared_whole(name: str) -> None:
    disks, made = stack(name, 32 * MIB)
    declared = layers()[name]
    assert disks == (32 * MIB,) * declared.disks
    assert [layer.name for layer in made] == [name]
    assert made[0].below == tuple(range(declared.disks))
    assert 0 < made[0].sectors <= SECTORS * declared.disks
    assert made[0].modules and declared.about
    assert len((SHIPPED / f"{name}.toml").read_text().splitlines()) <= 30
    commands = (*made[0].make, *made[0].start, *made[0].stop, made[0].mkfs, made[0].mount.split(","), made[0].device)
    words = [word for command in commands for word in ([command] if isinstance(command, str) else command)]
    assert not any(character in word for word in words for character in "{}")
    assert all(any(f"DISK{number}" in word for word in words) for number in range(declared.disks))


def test_tables_have_the_sizes_of_the_disks() -> None:
    disks, (layer,) = stack("linear", 3 * MIB)
    assert disks == (3 * MIB, 3 * MIB)
    assert layer.sectors == 12288
    assert " ".join(layer.start[0]) == "dm TOP 0 6144 linear DISK0 0; 6144 6144 linear DISK1 0"


def test_a_layer_is_there_once_for_each_device_of_the_layer_above() -> None:
    disks, made = stack("linear,raid1", 32 * MIB)
    assert len(disks) == 4
    assert [(layer.name, layer.below) for layer in made] == [
        ("raid1", (0, 1)), ("raid1", (2, 3)), ("linear", (4, 5))
    ]  # fmt: skip
    assert made[-1].sectors == 2 * made[0].sectors == 2 * (SECTORS - 2048)
    upside = stack("raid1, linear", 32 * MIB)[1]
    assert [(layer.name, layer.below) for layer in upside] == [
        ("linear", (0, 1)), ("linear", (2, 3)), ("raid1", (4, 5))
    ]  # fmt: skip


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
@pytest.mark.parametrize("words", ["linear", "raid1", "raid1,linear", "linear,raid1", "raid1,raid1"])
def test_without_a_size_the_device_of_the_file_system_is_as_large_as_ever(fs: str, words: str) -> None:
    usual = configuration(fs)
    made = configuration(fs, on=words)
    assert made.volume_bytes >= usual.volume_bytes
    assert not made.disks[0] % MIB
    assert made.disks[0] == usual.device_bytes or configuration(
        fs, device=made.disks[0] - MIB, on=words
    ).volume_bytes < (usual.volume_bytes)


def test_a_layer_that_never_makes_a_large_device_ends_the_search_for_a_size(tmp_path: Path) -> None:
    own = tmp_path / "tiny.toml"
    own.write_text('about = "8 sectors"\nsectors = "8"\nstart = ["dm TOP 0 8 linear DISK0 0"]\n')
    assert configuration("ext4", on=str(own)).volume_bytes == 4096


def test_what_is_on_a_stack_is_called_by_it_and_is_read_again() -> None:
    made = configuration("ext4", mount_options="data=ordered", device=64 * MIB, on="linear,raid1")
    assert made.name == "ext4 data=ordered on linear, raid1"
    assert (made.disks, made.device_bytes) == ((64 * MIB,) * 4, 256 * MIB)
    assert made.volume_bytes == 2 * (64 * MIB - 2048 * 512)
    assert made.modules == ("ext4", "raid1", "dm_mod")
    document = json.loads(json.dumps(encode(ConfigurationDocument.of(made))))
    assert decode(ConfigurationDocument, document).configuration == made
    document["layers"][0]["below"] = [0, 4]
    with pytest.raises(ValueError, match="raid1 is over devices"):
        _ = decode(ConfigurationDocument, document).configuration


def test_a_layer_of_ones_own_is_a_file(tmp_path: Path) -> None:
    own = tmp_path / "half.toml"
    own.write_text(
        'about = "half of a disk"\nsectors = "SIZE0 // 2"\nstart = ["dm TOP 0 {SIZE0 // 2} linear DISK0 0"]\n'
    )
    made = configuration("ext4", on=f"linear,{own}")
    assert [layer.name for layer in made.layers] == ["half", "half", "linear"]
    assert made.volume_bytes == made.disks[0]
    (tmp_path / "set.toml").write_text("[[configurations]]\nfs = 'ext4'\nstack = 'linear,./half.toml'\n")
    [one] = load_set(str(tmp_path / "set.toml")).configurations
    assert one == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sectors = 'SIZE0'\nstart = ['dm TOP 0 8 zero']", snapshot("mine.toml: 'about' is missing")),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = []",
            snapshot("mine.toml: start is missing"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE1'\nstart = ['dm TOP 0 8 zero 0']",
            snapshot("mine.toml: invalid number 'SIZE1'; expected SIZE0, whole numbers, + - * // ( ) min max"),
        ),
        (
            "about = 'x'\nsectors = '0 - SIZE0'\nstart = ['dm TOP 0 8 zero 0']",
            snapshot("mine.toml: disks of 32 MiB are too small for it"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm TOP 0 {SIZE0 / 2} linear DISK0 0']",
            snapshot("mine.toml: invalid number 'SIZE0 / 2'; expected SIZE0, whole numbers, + - * // ( ) min max"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm TOP 0 8 linear DISK1 0']",
            snapshot("mine.toml: 'dm TOP 0 8 linear DISK1 0': DISK1 is beyond the 1 below it (disks)"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm top 0 8 linear DISK0 0']",
            snapshot(
                "mine.toml: 'dm top 0 8 linear DISK0 0': 'top' cannot name a device; it needs capital letters, such as TOP"
            ),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm TOP 0 8']",
            snapshot("mine.toml: 'dm TOP 0 8' lacks words: dm has 5 at least"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm TOP 0 8 zero; 8 linear DISK0 0']",
            snapshot(
                "mine.toml: 'dm TOP 0 8 zero; 8 linear DISK0 0': each target of the table has its start, sectors, type and parameters"
            ),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nmake = ['md-create level=1 DISK0']\nstart = ['md A DISK0']",
            snapshot(
                "mine.toml: 'md-create level=1 DISK0': md-create has level=N and data=N, and may have chunk=N, layout=N, bitmap=N and ppl=N"
            ),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nmake = ['md-create level=1 data=8 spare=1']\nstart = ['md A DISK0']",
            snapshot(
                "mine.toml: 'md-create level=1 data=8 spare=1': md-create has level=N and data=N, and may have chunk=N, layout=N, bitmap=N and ppl=N"
            ),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nmake = ['md-create level=1 data=8 chunk=x DISK0']\nstart = ['md A DISK0']",
            snapshot(
                "mine.toml: 'md-create level=1 data=8 chunk=x DISK0': md-create has level=N and data=N, and may have chunk=N, layout=N, bitmap=N and ppl=N"
            ),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nmake = ['zero DISK0 -8']\nstart = ['dm TOP 0 8 zero 0']",
            snapshot("mine.toml: 'zero DISK0 -8': '-8' is not a number of sectors"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['dm TOP 0 8 zero 0', 'message TOP here hello']",
            snapshot("mine.toml: 'message TOP here hello': 'here' is not a number of sectors"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['lvchange -ay g/v']",
            snapshot(
                "mine.toml: device is missing: without dm, md, bcache, loop and nbd nothing says which device the layer makes"
            ),
        ),
        (
            "about = 'x'\ndisks = 9\nsectors = 'SIZE0'\nstart = ['dm TOP 0 8 linear DISK0 0']",
            snapshot("mine.toml: disks: expected int <= 8, got 9"),
        ),
        (
            "about = 'x'\ndisks = 2\nsectors = 'SIZE0'\nfs = 'xfs'\nstart = ['dm TOP 0 8 linear DISK0 0']",
            snapshot("mine.toml: start: a layer with the key fs has no such commands"),
        ),
        (
            "about = 'x'\ndisks = 2\nsectors = 'SIZE0'\nfs = 'xfs'\nmkfs = '-l logdev=DISK2'",
            snapshot("mine.toml: '-l logdev=DISK2': DISK2 is beyond the 2 below it (disks)"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nstart = ['loop TOP']",
            snapshot("mine.toml: 'loop TOP' lacks words: loop has 3 at least"),
        ),
        (
            "about = 'x'\nsectors = 'SIZE0'\nbegin = ['dm TOP 0 8 linear DISK0 0']",
            snapshot("mine.toml: unknown key 'begin'"),
        ),
    ],
)
def test_a_mistake_in_a_layer_is_named(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text)
    with pytest.raises(UsageError) as caught:
        stack(str(own), 32 * MIB)
    assert text_with(caught.value.message, "mine.toml") == message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("raid", snapshot("unknown layer 'raid'"), snapshot("did you mean 'raid6'?")),
        (
            "linear,,raid1",
            snapshot("unknown layer ''"),
            snapshot(
                "bob knows: bcache, bcache-writethrough, btrfs-raid1, btrfs-raid5, cache, crypt, crypt-4k, delay, dm-raid1, dm-raid5, dm-raid5-journal, era, ext4-journal, integrity, integrity-bitmap, integrity-direct, linear, loop, luks, lvm, mirror, mirror-log, nbd, overlay, raid0, raid1, raid1-bitmap, raid1-resync, raid10, raid4, raid5, raid5-bitmap, raid5-journal, raid5-journal-back, raid5-ppl, raid5-resync, raid6, snapshot, striped, thin, writecache, xfs-log, xfs-realtime"
            ),
        ),
        (
            "linear,linear,raid1,raid1",
            snapshot("the stack linear,linear,raid1,raid1 takes 16 disks; a guest has 8 at most"),
            snapshot("each layer is there once for each device of the layer above it"),
        ),
        (
            ",".join(["crypt"] * 2000),
            snapshot("the stack has 2000 layers; a guest has 16 at most"),
            snapshot("name fewer layers"),
        ),
        (
            "linear" + ",crypt" * 8,
            snapshot("the stack has 17 layers; a guest has 16 at most"),
            snapshot("name fewer layers"),
        ),
        (
            "./nowhere.toml",
            snapshot("nowhere.toml: cannot read nowhere.toml: No such file or directory"),
            snapshot("is this the file that declares it?"),
        ),
    ],
)
def test_a_stack_that_cannot_be_is_refused(words: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        stack(words, 32 * MIB)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("fs", "words", "message", "hint"),
    [
        (
            "ext4",
            "raid1,ext4-journal",
            snapshot("the layer ext4-journal cannot be below the layer raid1"),
            snapshot("it has to be the first in --stack: it hands its devices to ext4"),
        ),
        (
            "ext4",
            "ext4-journal,ext4-journal",
            snapshot("the layer ext4-journal cannot be below the layer ext4-journal"),
            snapshot("it has to be the first in --stack: it hands its devices to ext4"),
        ),
        ("xfs", "ext4-journal", snapshot("the layer ext4-journal is for ext4, not for xfs"), snapshot("--fs ext4")),
        ("ext3", "ext4-journal", snapshot("the layer ext4-journal is for ext4, not for ext3"), snapshot("--fs ext4")),
        ("btrfs", "xfs-log,raid1", snapshot("the layer xfs-log is for xfs, not for btrfs"), snapshot("--fs xfs")),
    ],
)
def test_a_file_system_with_several_devices_is_on_top_and_of_its_kind(
    fs: str, words: str, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        configuration(fs, on=words)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_each_device_of_a_file_system_may_be_an_array() -> None:
    made = configuration("xfs", on="xfs-log,raid1")
    assert (len(made.disks), made.layers[-1].below) == (4, (4, 5))
    assert made.layers[-1].mount == "logdev=DISK1"
    assert made.volume_bytes >= configuration("xfs").volume_bytes


def test_a_guest_has_as_many_disks() -> None:
    assert MOST_DISKS == late_disk.MOST_DISKS
    assert len(ARRAYS) == MOST_LAYERS * MOST_ARRAYS


@pytest.mark.parametrize(
    ("stack", "lost", "message"),
    [
        ("", (0,), snapshot("only a disk below layers can be lost")),
        ("raid1", (2,), snapshot("there is no disk 2 to lose")),
        ("raid1", (0, 1), snapshot("all 2 disks of this stack would be lost")),
    ],
)
def test_disks_that_are_not_there_cannot_be_lost(stack: str, lost: tuple[int, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        configuration("ext4", on=stack, lost=lost)
    assert caught.value.message == message


def test_a_lost_disk_is_part_of_a_configuration(tmp_path: Path) -> None:
    made = configuration("ext4", on="raid5", missing=(0,), lost=(2, 0, 2))
    assert made.name == "ext4 on raid5 without disk 0, losing disk 2"
    assert (made.missing, made.lost) == ((0,), (2,))
    document = json.loads(json.dumps(encode(ConfigurationDocument.of(made))))
    assert decode(ConfigurationDocument, document).configuration == made
    del document["lost"], document["missing"]
    assert decode(ConfigurationDocument, document).configuration.lost == ()
    (tmp_path / "set.toml").write_text("[[configurations]]\nfs = 'ext4'\nstack = 'raid5'\nmissing = [0]\nlost = [2]\n")
    [one] = load_set(str(tmp_path / "set.toml")).configurations
    assert one == made


def test_the_promise_of_a_layer_is_asked() -> None:
    every = [(name, promise) for name in layers() for _layer, promise in promises(stack(name, 32 * MIB)[1])]
    assert {name for name, _promise in every} >= {"raid5", "raid5-ppl", "integrity", "thin"}
    asked = {probe.property.name for probe in ProbeRequest(configuration("ext4", on="raid5")).asked}
    assert {promise.row for _name, promise in every} <= asked
    assert all(promise.source.startswith("Documentation/") for _name, promise in every)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 100))
def test_whole_numbers_are_those_of_python(one: int, other: int, third: int) -> None:
    numbers = {"SIZE0": one, "SIZE1": other}
    assert evaluated(f"min(SIZE0, SIZE1) // {third} * {third}", numbers) == min(one, other) // third * third
    assert evaluated(f"SIZE0 - (SIZE1 + {third})", numbers) == one - (other + third)


@pytest.mark.parametrize(
    "text", ["", "SIZE2", "1.5", "True", "'a'", "SIZE0 ** 9", "1 // 0", "__import__('os')", "min()", "(" * 999]
)
def test_nothing_else_is_a_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid number .*; expected SIZE0, whole numbers"):
        evaluated(text, {"SIZE0": 8})


def test_a_layer_of_an_older_bob_is_read() -> None:
    """Its document lacks the fields that layers with file systems of their own brought."""
    made = configuration("ext4", on="raid1")
    document = json.loads(json.dumps(encode(ConfigurationDocument.of(made))))
    for name in ("fs", "mkfs", "mount", "check"):
        del document["layers"][0][name]
    assert decode(ConfigurationDocument, document).configuration == made
