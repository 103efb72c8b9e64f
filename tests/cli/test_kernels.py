"""Several images: a run on each, the tables, and what changed between them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from bob.errors import UsageError
from bob.progress import Progress
from bob.result import Result, Verdict

from .stand_in import Bob, Work, result
from .test_compare import put_with

BOTH = ("--image", "debian-bookworm", "--image", "debian-trixie")


class Kernels(Work):
    """Another kernel, on which append-any holds."""

    def probe(self, request: Any, out: Path | None, progress: Progress) -> tuple[Result, Path]:
        self.result = of_kernel(request.image)
        return super().probe(request, out, progress)


def of_kernel(image: str) -> Result:
    made = result(unknown=False)
    if image == "debian-bookworm":
        return made
    column = made.configurations[0]
    cells = tuple(replace(cell, verdict=Verdict.HOLDS, evidence=None, witness=None) for cell in column.properties)
    environment = replace(made.environment, kernel="6.12.1-amd64", image=f"{image} (0123456789abcdef)")
    return replace(made, environment=environment, configurations=(replace(column, properties=cells),))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, work: Work) -> Work:
    import bob.run.prober

    kernels = Kernels()
    monkeypatch.setattr(bob.run.prober, "probe", kernels.probe)
    monkeypatch.setattr(bob.run.prober, "new_identity", lambda: "new", raising=False)
    monkeypatch.setattr("bob.image.ensure", lambda name, _step: name)
    monkeypatch.setattr("bob.image.check_kernel", lambda _image: None)
    monkeypatch.setattr("bob.image.check_file_system", lambda *_: None)
    return kernels


def test_a_run_on_each_and_what_changed(bob: Bob, work: Work) -> None:
    ended = bob("probe", "--fs", "ext4", *BOTH, "--out", "kernels", "--quiet")

    assert (ended.code, ended.err) == (0, "")
    assert [(request.image, out) for request, out in work.asked] == [
        ("debian-bookworm", Path("kernels/debian-bookworm")),
        ("debian-trixie", Path("kernels/debian-trixie")),
    ]
    lines = ended.out.splitlines()
    assert any("append-any" in line and "×" in line and "·" in line for line in lines), "side by side"
    assert "6.12.1-amd64: bob show kernels/debian-trixie" in lines
    assert any("no longer fails" in line for line in lines), "what changed"


def test_json_is_an_array(bob: Bob, work: Work) -> None:
    ended = bob("probe", "--fs", "ext4", *BOTH, "--json", "-", "--quiet")

    assert [one["environment"]["kernel"] for one in json.loads(ended.out)] == ["6.1.0-31-amd64", "6.12.1-amd64"]
    assert work.asked[0][1] == Path("bob-runs/new/debian-bookworm")


def test_one_kernel_without_the_file_system_stops_all(bob: Bob, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(image: str, module: str, _package: str) -> None:
        if image == "debian-trixie":
            raise UsageError(f"the kernel of {image} has no module {module} (CONFIG_EXT4_FS)", hint="another one")

    monkeypatch.setattr("bob.image.check_file_system", check)
    ended = bob("probe", "--fs", "ext4", *BOTH)

    assert ended.code == 2 and "CONFIG_EXT4_FS" in ended.err
    assert work.asked == []


def test_the_same_image_twice_is_one(bob: Bob, work: Work) -> None:
    bob("probe", "--fs", "ext4", "--image", "debian-trixie", "--image", "debian-trixie", "--out", "here")

    assert [(request.image, out) for request, out in work.asked] == [("debian-trixie", Path("here"))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--kernel", "bzImage"), "--kernel and --modules go together"),
        (("--modules", "."), "--kernel and --modules go together"),
        (("--kernel", "bzImage", "--modules", ".", *BOTH), "--kernel goes over one image"),
        (("--kernel", "bzImage", "--modules", "."), "bzImage is no bzImage"),
        (("--kernel-tree", ".", "--kernel", "bzImage"), "--kernel-tree has a kernel and its modules"),
        (("--kernel-tree", ".", *BOTH), "--kernel-tree goes over one image"),
        (("--guest", "testbox"), "'testbox' is no address of a machine"),
        (("--guest", "ssh://testbox", "--kernel-tree", "."), "--kernel-tree is for guests that bob boots"),
        (("--guest", "ssh://testbox", "--connect", "qemu:///system"), "--connect is for guests that bob boots"),
        (("--guest", "libvirt:testbox", "--kernel-tree", "."), "--kernel-tree is for guests that bob boots"),
        (("--guest", "ssh://testbox", "--image", "debian-trixie"), "--image is for guests that bob boots"),
        (("--guest", "ssh://testbox", "--jobs", "2"), "the machine of --guest is one guest"),
        (("--guest", "ssh://testbox", "--recovery-crashes", "2"), "recoveries are crashed in guests that bob boots"),
        (("--kernel-tree", "."), ". is no tree in which a kernel was built: include/config/auto.conf"),
    ],
)
def test_what_is_no_kernel(bob: Bob, work: Work, options: tuple[str, ...], said: str) -> None:
    Path("bzImage").write_bytes(bytes(1024))
    ended = bob("probe", "--fs", "ext4", *options)

    assert ended.code == 2 and ended.err.startswith(f"bob: {said}")
    assert work.asked == []


def test_a_machine_stands_where_an_image_would(bob: Bob, work: Work) -> None:
    bob("probe", "--fs", "ext4", "--guest", "ssh://me@testbox:2222/", "--out", "here", "--quiet")
    assert [(request.image, out) for request, out in work.asked] == [("ssh://me@testbox:2222", Path("here"))]
    whose = ("--guest", "libvirt:testbox", "--connect", "qemu:///system")
    bob("probe", "--fs", "ext4", *whose, "--out", "there", "--quiet")
    request, _out = work.asked[1]
    assert (request.image, request.host.connect) == ("libvirt:testbox", "qemu:///system")


def test_each_kernel_is_held_against_what_is_expected(bob: Bob) -> None:
    """And one JUnit file has a suite for each, named after its image without the image's key."""
    put_with("table")
    ended = bob("probe", "--fs", "ext4", "--mount-opts", "data=ordered", *BOTH, "--expect", "table", "--junit", "r.xml")
    assert ended.code == 1
    assert "2 cells expected by table: 2 as expected\n" in ended.out
    assert ended.out.endswith("2 cells expected by table: 1 better, 1 as expected\n")
    root = Xml.parse("r.xml").getroot()
    assert [suite.attrib["name"] for suite in root] == ["debian-bookworm: ext4-ordered", "debian-trixie: ext4-ordered"]
    assert [suite.attrib["failures"] for suite in root] == ["0", "1"]
    ended = bob("probe", "--fs", "ext4", "--mount-opts", "data=ordered", *BOTH, "--out", "b", "--junit", "r.xml")
    assert (ended.code, [suite.attrib["failures"] for suite in Xml.parse("r.xml").getroot()]) == (0, ["1", "0"])
