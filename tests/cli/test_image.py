"""bob image, on a cache with toy images; nothing is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bob.image import Image, load_recipe, recipe_names
from bob.image.cache import image_folder, images_folder, write_manifest

from .stand_in import Bob

NAME = "debian-bookworm"


def put(folder: Path, key: str, name: str = NAME) -> Path:
    """An image as a build leaves it, with one file of 3 MiB."""
    folder.mkdir(parents=True)
    (folder / "kernel").write_bytes(bytes(3 * 2**20))
    image = Image(name, key, folder, "6.1.0-31-amd64", "", "", "2026-11-21T00:00:00+00:00", {}, {"kernel": 3 * 2**20})
    write_manifest(image)
    return folder


@pytest.fixture
def built(bob: Bob) -> Path:
    """The image of the shipped recipe."""
    recipe = load_recipe(NAME)
    return put(image_folder(recipe), recipe.key)


def test_list_without_images(bob: Bob) -> None:
    ended = bob("image", "list")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1].split() == [NAME, "not", "built"]


def test_each_image_has_a_line(bob: Bob, built: Path) -> None:
    name = f"{NAME}+6.12.107+deb13-amd64"
    put(images_folder() / f"{name}-0123456789abcdef", "0123456789abcdef", name)

    *lines, where = bob("image", "list").out.splitlines()

    assert where == f"in {images_folder()}"
    assert [line.split()[0] for line in lines] == ["image", *recipe_names(), name]


def test_list(bob: Bob, built: Path) -> None:
    old = put(images_folder() / f"{NAME}-0123456789abcdef", "0123456789abcdef")

    lines = bob("image", "list").out.splitlines()
    bob("image", "list", "--json", "i.json")
    document = json.loads(Path("i.json").read_text())

    assert lines[1].split()[:5] == [NAME, "built", "6.1.0-31-amd64", "3", "MiB"]
    assert document["schema"] == "bob.images/1"
    assert [(row["state"], row["folder"]) for row in document["images"] if row["folder"]] == [
        ("built", str(built)),
        ("outdated", str(old)),
    ]


def test_build_what_is_there(bob: Bob, built: Path) -> None:
    assert bob("image", "build").out == f"{NAME} was built already: {built}\n"
    [row] = json.loads(bob("image", "build", "--json", "-").out)["images"]
    assert (row["name"], row["state"], row["folder"]) == (NAME, "built", str(built))


def test_rm_takes_the_outdated_ones_too(bob: Bob, built: Path) -> None:
    old = put(images_folder() / f"{NAME}-0123456789abcdef", "0123456789abcdef")

    ended = bob("image", "rm", NAME)

    assert (ended.code, ended.err) == (0, "")
    assert sorted(ended.out.splitlines()) == sorted(f"removed {folder} (3 MiB)" for folder in (built, old))
    assert not built.exists()
    assert not old.exists()


def test_rm_removes_nothing_if_one_name_is_wrong(bob: Bob, built: Path) -> None:
    ended = bob("image", "rm", NAME, "debian-potato")

    assert ended.code == 2
    assert ended.err == f"bob: there is no guest image 'debian-potato' to remove\nhint: built: {NAME}\n"
    assert built.exists()


def test_kernels_of_ones_own_are_listed_and_removed(bob: Bob, built: Path) -> None:
    mine = put(images_folder() / f"{NAME}+6.16.0-0123456789abcdef", "0123456789abcdef", f"{NAME}+6.16.0")
    (mine / "root.erofs").symlink_to(built / "kernel")
    sizes = {"kernel": 3 * 2**20, "root.erofs": 3 * 2**20}
    write_manifest(Image(f"{NAME}+6.16.0", "0123456789abcdef", mine, "6.16.0", "", "", "2026-11-21", {}, sizes))

    lines = bob("image", "list").out.splitlines()

    assert any(line.split() == [f"{NAME}+6.16.0", "own", "kernel", "6.16.0", "3", "MiB"] for line in lines)
    assert bob("image", "rm", f"{NAME}+6.16.0").out == f"removed {mine} (3 MiB)\n"
    assert built.exists() and not mine.exists()
