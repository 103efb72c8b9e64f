"""The help is there, has examples, loads fast, and is what docs/cli.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import bob as package
from bob.cli.help_page import contexts, page
from bob.cli.main import COMMANDS

from .stand_in import Bob, Ended

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
CONTEXTS = list(contexts())
LEAVES = [
    context
    for context in CONTEXTS
    if not isinstance(context.command, click.Group) or context.command.invoke_without_command
]


@pytest.mark.parametrize("context", LEAVES, ids=lambda context: context.command_path)
def test_every_command_has_an_example_that_names_it(context: click.Context) -> None:
    examples = re.search(r"^ *Examples?:\n(( {4,}.+\n)+)", context.get_help(), re.MULTILINE)
    assert examples is not None
    assert context.command_path in examples[1]


@pytest.mark.parametrize("context", LEAVES, ids=lambda context: context.command_path)
def test_examples_fit_a_terminal(context: click.Context) -> None:
    blocks = re.findall(r"^ {4}bob .*$", context.get_help(), re.MULTILINE)
    assert [line for line in blocks if len(line) > 100] == []


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_everywhere(bob: Bob, context: click.Context, option: str) -> None:
    ended = bob(*context.command_path.split()[1:], option)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: {context.command_path} ")


def test_docs_are_up_to_date() -> None:
    assert DOCS.read_text() == page(), "write it anew: python -m bob.cli.help_page > docs/cli.md"


def test_version(bob: Bob) -> None:
    assert bob("--version") == Ended(0, f"bob {package.__version__}\n", "")


def test_help_loads_no_command() -> None:
    """What takes time to load is loaded when it is used: `bob --help` is there in a tenth of a second."""
    slow = {"construct", "libvirt", "numpy", "pandas", "paramiko", "rich"}
    script = f"""
import sys
from bob.cli.main import run
code = run(["--help"])
loaded = {slow!r} & set(sys.modules)
sys.exit(f"loaded: {{loaded}}" if loaded else code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


def test_shell_completion(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_BOB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "bob probe --fs ext4 --property append-a")
    monkeypatch.setenv("COMP_CWORD", "5")

    ended = bob()

    assert ended.code == 0
    assert ended.out.split() == ["plain,append-append-same-file", "plain,append-any"]
