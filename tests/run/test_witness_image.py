"""On which kernel a witness is shown again: its own, another package of its series, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.errors import UsageError
from bob.image import Image
from bob.kernel_series import is_same_series
from bob.progress import Silent
from bob.run import witness_image
from bob.run.witness_image import WitnessFile, by_image
from report.witnesses import witness as stored

OWN = "6.1.0-56-amd64"


class Told(Silent):
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, what: str) -> None:
        self.steps.append(what)


@pytest.fixture
def found(tmp_path: Path) -> list[WitnessFile]:
    """Two witnesses of one run."""
    witness = stored("overwrite-any", tmp_path)
    return [(tmp_path / name, witness) for name in ("one.json", "other.json")]


def boots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernel: str) -> None:
    image = Image(
        name="debian-bookworm",
        key="0" * 16,
        folder=tmp_path,
        kernel_release=kernel,
        cmdline="",
        host_key="",
        built="2026-01-01T00:00:00+00:00",
        tools={},
        sizes={},
    )
    monkeypatch.setattr(witness_image, "image_called", lambda *_: image)


def test_the_same_kernel_needs_no_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: list[WitnessFile]
) -> None:
    boots(monkeypatch, tmp_path, found[0][1].kernel)
    progress = Told()
    [(_image, group)] = by_image(found, None, progress, any_kernel=False)
    assert (group, progress.steps) == (found, [])


@pytest.mark.parametrize("any_kernel", [False, None])
def test_another_package_of_the_series_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: list[WitnessFile], any_kernel: bool | None
) -> None:
    assert found[0][1].kernel == OWN
    boots(monkeypatch, tmp_path, "6.1.0-57-amd64")
    progress = Told()
    [(image, group)] = by_image(found, None, progress, any_kernel=any_kernel)
    assert (image.kernel_release, group) == ("6.1.0-57-amd64", found)
    [line] = progress.steps
    assert OWN in line and "6.1.0-57-amd64" in line


@pytest.mark.parametrize("kernel", ["6.12.48+deb13-amd64", "6.1.0-56-mine", "6.1.0-56-rt-amd64", "6.1.0-rc1-amd64"])
def test_a_kernel_of_another_series_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: list[WitnessFile], kernel: str
) -> None:
    boots(monkeypatch, tmp_path, kernel)
    with pytest.raises(UsageError, match=r"6\.1\.0-56-amd64") as caught:
        by_image(found, None, Silent(), any_kernel=False)
    assert "--any-kernel" in (caught.value.hint or "")
    [(image, _group)] = by_image(found, None, Silent(), any_kernel=True)
    assert image.kernel_release == kernel


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("6.1.0-56-amd64", "6.1.0-57-amd64"),
        ("6.12.48+deb13-amd64", "6.12.57+deb13-amd64"),
        ("6.12.48+deb13-amd64", "6.12.57+deb13u1-amd64"),
        ("6.1.0-0.deb11.21-amd64", "6.1.0-57-amd64"),
        ("6.16.0-mine", "6.16.0-mine"),
    ],
)
def test_packages_of_one_series(one: str, other: str) -> None:
    assert is_same_series(one, other) and is_same_series(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("6.1.0-56-amd64", "6.10.0-56-amd64"),
        ("6.1.0-56-amd64", "6.1.0-56-cloud-amd64"),
        ("6.16.0-mine", "6.16.0-other"),
        ("6.16.0-mine", "6.16.1-mine"),
        ("6.16.0", "6.16.0-1-amd64"),
        ("6.1.0-56-amd64", "6.1.0-56-amd64+"),
        ("6.8.0-31-generic", "6.8.0-32-generic"),
        ("", "6.1.0-56-amd64"),
    ],
)
def test_kernels_that_may_have_been_built_of_other_code(one: str, other: str) -> None:
    assert not is_same_series(one, other) and not is_same_series(other, one)
