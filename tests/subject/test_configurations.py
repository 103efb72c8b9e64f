"""Declarations: what is shipped is whole, and a mistake in one is told in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.errors import UsageError
from bob.schema import decode, encode
from bob.subject import (
    MIB,
    Layer,
    Subject,
    configuration,
    file_system,
    file_systems,
    load_set,
    set_names,
)
from bob.subject.file_system import declared_by
from bob.subject.subject import ConfigurationDocument
from wording import text_with

OSDI14 = (
    "ext2", "ext2-sync", "ext3-writeback", "ext3-ordered", "ext3-datajournal", "ext4-writeback", "ext4-ordered",
    "ext4-nodelalloc", "ext4-datajournal", "btrfs", "xfs", "xfs-wsync", "reiserfs-nolog", "reiserfs-writeback",
    "reiserfs-ordered", "reiserfs-datajournal",
)  # fmt: skip


def test_the_sixteen_of_table_1() -> None:
    chosen = load_set("osdi14")
    assert tuple(one.name for one in chosen.configurations) == OSDI14
    assert "osdi14" in set_names()


def test_the_file_systems_of_today() -> None:
    made = {one.name: one for one in load_set("modern").configurations}
    assert {one.fs.name for one in made.values()} >= {"ext4", "xfs", "btrfs", "f2fs", "nilfs2", "jfs", "vfat", "exfat"}
    assert made["ext4-nojournal"].fs.check, "a boot checks what has no journal"
    assert made["f2fs-strict"].mount_options == "fsync_mode=strict"
    assert made["ext4-1k"].mkfs[-3:] == ("-b", "1024", "DEVICE")


@pytest.mark.parametrize(
    ("options", "said"), [("-b 1024", "1024 bytes"), ("-b 4096", "4,096-byte blocks"), ("-b 1024 -b 4k", "4,096-byte")]
)
def test_a_note_on_blocks(options: str, said: str) -> None:
    assert said in configuration("ext4", options).note


@pytest.mark.parametrize("name", file_systems())
def test_every_file_system_is_declared_whole(name: str) -> None:
    fs = file_systems()[name]
    assert any(word in fs.mkfs[0] for word in ("mk", "format")) and fs.mkfs.count("DEVICE") == 1
    assert fs.device >= fs.smallest >= MIB
    assert fs.quiet > 30, "the flusher writes what has been dirty for 30 s"
    assert fs.package


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (("ext4",), "ext4"),
        (("ext4", "", "data=journal"), "ext4-datajournal"),
        (("ext4", "-O ^dir_index", "data=journal"), "ext4 -O ^dir_index data=journal"),
        (("xfs", "", "wsync", 0, "mine"), "mine"),
    ],
)
def test_names(asked: tuple[str, ...], name: str) -> None:
    assert configuration(*asked).name == name  # type: ignore[arg-type]


def test_the_options_that_the_kernel_takes_where_none_are_given() -> None:
    assert configuration("ext4").options == configuration("ext4", mount_options="data=ordered").options
    assert configuration("ext4", mount_options="nodelalloc").options == {"nodelalloc"}
    assert configuration("btrfs").options == frozenset()
    both = [configuration("xfs", mount_options=options).options for options in ("wsync,noatime", "noatime,wsync")]
    assert both[0] == both[1]


def test_the_users_mkfs_options_come_last() -> None:
    mkfs = configuration("ext4", "-O '^a b' -N 5").mkfs
    assert mkfs[-5:] == ("-O", "^a b", "-N", "5", "DEVICE")


def written(path: Path, text: str) -> str:
    file = path / "mine.toml"
    file.write_text(text)
    return str(file)


def test_a_set_of_ones_own(tmp_path: Path) -> None:
    text = """
        about = "what barriers do"
        [[configurations]]
        fs = "ext4"
        [[configurations]]
        name = "none"
        fs = "ext4"
        mount_options = "barrier=0"
        mkfs_options = "-O ^metadata_csum"
        device_mib = 64
    """
    chosen = load_set(written(tmp_path, text))
    ext4 = file_systems()["ext4"]
    assert (chosen.name, chosen.about) == ("mine", "what barriers do")
    assert chosen.configurations == (
        Subject("ext4", ext4),
        Subject("none", ext4, "-O ^metadata_csum", "barrier=0", (64 * MIB,)),
    )


def test_a_set_with_rows_of_its_own(tmp_path: Path) -> None:
    text = """
        rows = "./rows.toml"
        [[configurations]]
        fs = "ext4"
        [[configurations]]
        fs = "ext2"
        mount_options = "sync"
        asks = ["mount-sync"]
    """
    chosen = load_set(written(tmp_path, text))
    assert chosen.rows == tmp_path / "./rows.toml"
    assert chosen.asks == {"ext2-sync": ("mount-sync",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'configurations' is missing"),
        ("[[configurations]]\nfs = 'ext4'\nasks = ['sync']", "'ext4' has 'asks', but the set has no 'rows'"),
        ("configurations = 5", "configurations: expected array, got 5"),
        ("configurations = []", "configurations: expected array of length >= 1, got []"),
        ("[[configurations]]", "'fs' is missing"),
        ("[[configurations]]\nfs = 5", "configurations[0].fs: expected str, got 5"),
        ("[[configurations]]\nfs = 'zfs'", "unknown file system 'zfs'"),
        ("[[configurations]]\nfs = 'ext4'\nmount_opts = 'sync'", "unknown key 'mount_opts'"),
        ("[[configurations]]\nfs = 'ext4'\ndevice_mib = -1", "configurations[0].device_mib: expected int >= 0, got -1"),
        ("[[configurations]]\nfs = 'ext4'\nmkfs_options = \"'\"", "mkfs options"),
        ("abuot = 'x'\n[[configurations]]\nfs = 'ext4'", "unknown key 'abuot'"),
        ("[[configurations]]\nfs = 'ext4'\n" * 2, "two configurations have the name 'ext4'"),
        ("about = ", "Invalid value"),
        ("about = '\udcff'", "codec can't"),
    ],
)
def test_mistakes_in_a_set(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as caught:
        load_set(str(file))
    assert caught.value.message.startswith("mine.toml: ")
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_set_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        load_set(str(tmp_path / "gone"))
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("unknown set 'TMP/gone'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("package = ", "packet = "), snapshot("ext5.toml: unknown key 'packet'")),
        (("DEVICE", "DEVICE DEVICE"), snapshot("ext5.toml: mkfs must have the word DEVICE exactly once")),
        (("quiet = 36", "quiet = true"), snapshot("ext5.toml: quiet: expected int | float, got True")),
        (('"data=journal" = ', '"data=journal" = 5 #'), snapshot("ext5.toml: names[...]: expected str, got int")),
    ],
)
def test_mistakes_in_a_file_system(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    shipped = Path(configuration.__code__.co_filename).with_name("file-systems") / "ext4.toml"
    file = tmp_path / "ext5.toml"
    file.write_text(shipped.read_text().replace(*change))
    with pytest.raises(UsageError) as refused:
        file_system(str(file))
    assert str(refused.value).replace(str(tmp_path), "TMP") == message


MINE = (Path(configuration.__code__.co_filename).with_name("file-systems") / "ext4.toml").read_text()


def test_a_file_system_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ext5.toml").write_text(MINE)
    fs = file_system(str(tmp_path / "ext5.toml"))
    shipped = file_systems()["ext4"]
    assert fs == replace(shipped, name="ext5", driver="ext5", module="ext5", declaration=MINE)
    assert not shipped.declaration
    made = configuration(str(tmp_path / "ext5.toml"), "-I 512", "data=journal")
    assert (made.name, made.fs) == ("ext5 -I 512 data=journal", fs)
    assert configuration(str(tmp_path / "ext5.toml"), "", "data=journal").name == "ext4-datajournal"


def test_what_was_asked_of_it_is_read_without_its_file(tmp_path: Path) -> None:
    (tmp_path / "ext5.toml").write_text(MINE)
    made = configuration(str(tmp_path / "ext5.toml"), "-I 512", device=64 * MIB)
    document = json.loads(json.dumps(encode(ConfigurationDocument.of(made))))
    (tmp_path / "ext5.toml").unlink()
    assert decode(ConfigurationDocument, document).configuration == made
    del document["declaration"]
    with pytest.raises(UsageError) as refused:
        _ = decode(ConfigurationDocument, document).configuration
    assert text_with(str(refused.value), "ext5") == snapshot("this version of bob does not know the file system 'ext5'")
    assert "declaration" not in encode(ConfigurationDocument.of(configuration("ext4")))


def test_a_run_keeps_its_declaration_where_bob_has_one_of_this_name_now() -> None:
    older = declared_by("ext4", MINE.replace("quiet = 36", "quiet = 99"))
    assert older.quiet == 99
    assert ConfigurationDocument.of(configuration(older)).configuration.fs == older


def test_a_set_finds_file_systems_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "ext5.toml").write_text(MINE)
    (tmp_path / "sets" / "mine.toml").write_text("[[configurations]]\nfs = './ext5.toml'\nname = 'new'\n")
    monkeypatch.chdir(tmp_path)
    [made] = load_set("sets/mine.toml").configurations
    assert (made.name, made.fs.name) == ("new", "ext5")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ext4.toml", MINE, "bob already has a file system 'ext4'"),
        ("a file.toml", MINE, "invalid file system name 'a file'"),
        ("ext5.toml", MINE.replace("package", "packet"), "ext5.toml: unknown key 'packet'"),
        ("ext5.toml", "mkfs = ", "ext5.toml: Invalid value"),
        ("ext5.toml", "\udcff", "ext5.toml: 'utf-8' codec can't"),
        ("ext5.toml", None, "ext5.toml: No such file"),
    ],
)
def test_a_file_that_declares_none(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as caught:
        file_system(str(tmp_path / name))
    assert message in caught.value.message and "\n" not in caught.value.message


# Disks, and layers on them

LOWER = Layer("mirror", (0, 1), 4096, (("make", "DISK0", "DISK1"),), (), (("end",),), "/dev/mirror")
UPPER = Layer("crypt", (2,), 4096, (("open", "DISK0"),), (), (("close",),), "/dev/crypt")


def test_what_is_on_layers_is_called_by_them_from_the_top_down_and_is_read_again() -> None:
    made = configuration("xfs", disks=(32 * MIB, 16 * MIB), layers=(LOWER, UPPER))
    assert (made.name, made.disks, made.device_bytes) == ("xfs on crypt, mirror", (32 * MIB, 16 * MIB), 48 * MIB)
    assert file_systems()["xfs"].forgets
    assert not configuration("xfs", layers=(replace(UPPER, below=(0,)),)).forgets
    document = json.loads(json.dumps(encode(ConfigurationDocument.of(made))))
    assert (document["device"], document["disks"], len(document["layers"])) == (0, [32 * MIB, 16 * MIB], 2)
    assert decode(ConfigurationDocument, document).configuration == made


@pytest.mark.parametrize("device", [0, 64 * MIB])
def test_one_disk_is_written_as_it_always_was(device: int) -> None:
    made = configuration("ext4", device=device)
    document = encode(ConfigurationDocument.of(made))
    assert document["device"] == device
    assert not {"disks", "layers"} & set(document)
    assert made.disks == (device or file_systems()["ext4"].device,)
    assert decode(ConfigurationDocument, json.loads(json.dumps(document))).configuration == made


@pytest.mark.parametrize("disks", [[0, MIB], [-1], [MIB, "1"]])
def test_disks_that_cannot_be_are_damage(disks: list[object]) -> None:
    document = {**json.loads(json.dumps(encode(ConfigurationDocument.of(configuration("ext4"))))), "disks": disks}
    with pytest.raises(ValueError):
        _ = decode(ConfigurationDocument, document).configuration
