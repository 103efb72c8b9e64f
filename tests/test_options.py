"""A function that declares its options: what is read from the declarations, and what the command line makes of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click
import pytest

from bob.cli.options import takes_options
from bob.errors import UsageError
from bob.options import Range, Words, arguments, group, option, parameters
from bob.python.calls import annotation_of, for_python
from bob.settings import forget


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


def read_even(word: str, option: str) -> int:
    if int(word) % 2:
        raise UsageError(f"{option}: {word} is odd")
    return int(word)


EVEN = Words(read_even)


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty directory, without a bob.toml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    forget()
    yield
    forget()


@group
class Inner:
    """A group in a group."""

    speed: Speed = option("--speed", "How fast.", default=Speed.FAST)


@group
class Group:
    """A group."""

    inner: Inner
    count: int = option("--count", "How many.", Range(1), 3, setting="jobs")


def declaring(
    place: Path = option("PLACE", "The place."),
    *,
    group: Group,
    names: tuple[str, ...] = option("--names", "A name, e.g. ext4. And more."),
    even: int | None = option("--even", "Even.", EVEN, words="none"),
    own: int = 7,
) -> dict[str, Any]:
    """A function.

    It has more to say.
    """
    return dict(locals())


def test_what_a_function_declares_is_read_with_its_groups_taken_apart() -> None:
    read = {one.name: (one.kind, one.several, one.optional) for one in parameters(declaring)}
    assert read == {
        "place": (Path, False, False),
        "speed": (Speed, False, False),
        "count": (int, False, False),
        "names": (str, True, False),
        "even": (int, False, True),
    }
    assert [one.name for one in parameters(declaring) if one.is_required] == ["place"]
    assert [one.choices for one in parameters(declaring) if one.choices] == [("slow", "fast")]


def test_groups_are_put_together_again() -> None:
    made = arguments(declaring, {"place": Path("x"), "speed": Speed.SLOW, "count": 2, "names": ("a",)})
    assert made == {"place": Path("x"), "group": Group(inner=Inner(speed=Speed.SLOW), count=2), "names": ("a",)}
    assert declaring(**made)["own"] == 7


def shell(*words: str) -> dict[str, Any]:
    """What the command that ``declaring`` makes is handed."""
    command = click.command()(takes_options(declaring))
    return dict(command.main(list(words), standalone_mode=False))


def test_a_command_is_handed_values_in_the_declared_types() -> None:
    handed = shell("x", "--speed", "slow", "--names", "a", "--names", "b", "--even", "4")
    assert handed == {
        "place": Path("x"),
        "group": Group(inner=Inner(speed=Speed.SLOW), count=3),
        "names": ("a", "b"),
        "even": 4,
        "own": 7,
    }
    assert shell("x")["group"] == Group(inner=Inner(speed=Speed.FAST), count=3)


def test_a_command_refuses_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="--even: 3 is odd"):
        shell("x", "--even", "3")
    for words in (["x", "--speed", "slower"], ["x", "--count", "0"], [], ["x", "y"]):
        with pytest.raises(click.UsageError):
            shell(*words)


def test_what_bob_toml_says_is_the_default() -> None:
    Path("bob.toml").write_text("jobs = 5")
    forget()
    assert shell("x")["group"].count == 5
    assert shell("x", "--count", "2")["group"].count == 2
    assert for_python(declaring)("x")["group"].count == 5
    assert for_python(declaring)("x", count=2)["group"].count == 2


def test_help_is_made_of_what_is_declared() -> None:
    command = click.command()(takes_options(declaring))
    said = " ".join(command.get_help(click.Context(command)).split())
    assert "--names TEXT A name, e.g. ext4; may be repeated. And more. " in said
    assert "--speed [slow|fast] How fast. [default: fast]" in said
    assert "--count INTEGER RANGE How many. [default: 3; x>=1]" in said
    assert "--even NAME Even. [default: none]" in said


def test_python_is_handed_the_same_and_says_the_same() -> None:
    called = for_python(declaring)
    assert called("x", speed="slow", names="a", even=4) == declaring(
        Path("x"), group=Group(inner=Inner(speed=Speed.SLOW), count=3), names=("a",), even=4
    )
    assert str(inspect.signature(called)) == (
        "(place: str | os.PathLike[str], *, speed: str = 'fast', count: int | None = None,"
        " names: str | collections.abc.Sequence[str] = (), even: int | None = None) -> 'dict[str, Any]'"
    )
    assert called.__doc__ == (
        "A function.\n\nIt has more to say.\n\n:param place: The place.\n:param speed: How fast. One of slow, fast.\n"
        ":param count: How many. Default: from bob.toml, else 3.\n"
        ":param names: A name, e.g. ext4. And more.\n:param even: Even. Default: none."
    )
    assert [annotation_of(one) for one in parameters(declaring)][:2] == ["StrPath", "str"]
    with pytest.raises(UsageError, match="invalid speed 'slower'; expected one of slow, fast"):
        called("x", speed="slower")
