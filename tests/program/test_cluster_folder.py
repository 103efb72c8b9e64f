"""The folder of a cluster, and the requests for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.catalogue.request import ProbeRequest, request_from_json, request_to_json
from bob.errors import UsageError
from bob.program.folder import CLUSTER
from bob.program.program import Program, ProgramDocument
from bob.record.encode import encode_subject
from bob.run.option_table import ClusterExploration, FileSystemOptions, GuestOptions
from bob.run.requests import cluster_requests
from bob.schema import decode, encode
from wording import text_with

SCRIPTS = "node", "ready", "workload", "check"


def folder(path: Path, declaration: str = "", *, leave_out: str = "") -> Path:
    path.mkdir()
    (path / "cluster.toml").write_text(declaration)
    for name in SCRIPTS:
        if name != leave_out:
            (path / name).write_text("#!/bin/sh\n")
            (path / name).chmod(0o755)
    return path


def requests(cluster: Program, *file_systems: str, only_durable: bool = True) -> list[ProbeRequest]:
    return cluster_requests(
        cluster,
        file_systems,
        FileSystemOptions(),
        ClusterExploration(),
        "debian-bookworm",
        GuestOptions(),
        only_durable=only_durable,
        progress=print,
    )


def test_a_cluster_is_a_program_with_nodes(tmp_path: Path) -> None:
    found = CLUSTER.load(folder(tmp_path / "mine", "nodes = 5\nready_seconds = 2\nseconds = 7\n"))
    assert (found.name, found.nodes, found.ready_seconds, found.seconds) == ("mine", 5, 2, 7)
    assert decode(ProgramDocument, encode(ProgramDocument.of(found))).program == found


def test_mistakes_in_a_cluster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as lacking:
        CLUSTER.load(folder(tmp_path / "lame", leave_out="node"))
    assert lacking.value.message == f"{tmp_path}/lame lacks the script node"
    assert lacking.value.hint == snapshot("bob cluster new NAME writes a cluster's folder to start from")
    with pytest.raises(UsageError) as many:
        CLUSTER.load(folder(tmp_path / "many", "nodes = 40\n"))
    assert text_with(many.value.message, "cluster.toml", "nodes", "40")
    with pytest.raises(UsageError) as ruled:
        CLUSTER.load(folder(tmp_path / "ruled", 'rules = ["R9"]\n'))
    assert text_with(ruled.value.message, "cluster.toml", "R9", "R1, R2, R3, R4, R5")
    for wrong in ("[[0, 3]]", "[[0, 1], [1, 2]]"):
        with pytest.raises(UsageError) as alike:
            CLUSTER.load(folder(tmp_path / f"alike{len(wrong)}", f"alike = {wrong}\n"))
        assert text_with(alike.value.message, "cluster.toml", "alike", "2")
    with pytest.raises(UsageError) as led:
        CLUSTER.load(folder(tmp_path / "led", "master = 3\n"))
    assert text_with(led.value.message, "cluster.toml", "master", "0 to 2", "3")
    (folder(tmp_path / "dumb") / "signature").write_text("#!/bin/sh\n")
    with pytest.raises(UsageError) as dumb:
        CLUSTER.load(tmp_path / "dumb")
    assert dumb.value.message == f"{tmp_path}/dumb/signature is not executable"
    with pytest.raises(UsageError) as unknown:
        CLUSTER.named("toi")
    assert unknown.value.hint == snapshot("did you mean 'toy'?")


def test_each_node_has_a_file_system_and_a_disk_of_its_own(tmp_path: Path) -> None:
    cluster = CLUSTER.load(folder(tmp_path / "mine", "device_mib = 32\n"))
    alike, mixed = requests(cluster, "ext4", "ext4,xfs,btrfs")
    made = mixed.configuration
    assert (alike.configuration.name, made.name) == ("3 x ext4", "ext4, xfs, btrfs")
    assert [node.fs.name for node in made.nodes] == ["ext4", "xfs", "btrfs"]
    assert made.disks == tuple(node.device_bytes for node in made.nodes)
    assert {"ext4", "xfs", "btrfs", "veth", "bridge"} <= set(made.modules)
    assert {"e2fsprogs", "xfsprogs", "btrfs-progs"} <= set(made.packages)
    assert not made.is_one_disk
    for asked in (alike, mixed):
        assert request_from_json(request_to_json(asked)) == asked


def test_no_two_nodes_have_file_systems_with_one_uuid(tmp_path: Path) -> None:
    """mkfs.btrfs refuses that, and so does the kernel's mount of xfs."""
    cluster = CLUSTER.load(folder(tmp_path / "mine"))
    for asked in requests(cluster, "ext4", "btrfs", "ext4,xfs,btrfs"):
        commands = [" ".join(node.mkfs) for node in encode_subject(asked.configuration).nodes]
        found = [re.findall(r"b0b0b0b0-[0-9a-f-]{27}", command) for command in commands]
        assert [len(set(one)) for one in found] == [1, 1, 1]
        assert len({one[0] for one in found}) == 3


def test_file_systems_must_be_one_or_one_for_each_node(tmp_path: Path) -> None:
    cluster = CLUSTER.load(folder(tmp_path / "mine"))
    with pytest.raises(UsageError) as refused:
        requests(cluster, "ext4,xfs")
    assert text_with(refused.value.message, "ext4,xfs", "2", "3")


def test_the_shipped_clusters_can_be_loaded() -> None:
    for name, path in CLUSTER.folders().items():
        assert CLUSTER.load(path).name == name
