"""The help is there, has examples, loads fast, and is what docs/cli.md says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from inline_snapshot import snapshot

import bob as package
from bob.cli.help_page import contexts, page
from bob.cli.main import COMMANDS, EPILOG
from bob.cli.man import page as man_page
from wording import text_with

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


LONG = {"probe", "matrix", "search", "try", "app run", "app check", "judge", "replay", "apm derive", "apm check"}
LONG |= {
    "witness shrink",
    "image build",
    "apm what-if",
    "reproduce",
    "cluster run",
    "cluster power-cut",
    "trace import",
}
"""What takes minutes, or may."""


def test_what_takes_long_can_be_quiet_and_answers_a_program() -> None:
    having = {
        option: {
            context.command_path.removeprefix("bob ")
            for context in CONTEXTS
            if any(option in parameter.opts for parameter in context.command.params)
        }
        for option in ("--quiet", "--json")
    }
    assert having["--quiet"] == LONG | {"witness export", "app build"}  # whose answers are the files that they write
    assert having["--json"] > LONG


def test_docs_are_up_to_date() -> None:
    assert DOCS.read_text() == page(), "write it anew: python -m bob.cli.help_page > docs/cli.md"


def test_version(bob: Bob) -> None:
    assert bob("--version") == Ended(0, f"bob {package.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (["--help"], {"construct", "libvirt", "numpy", "pandas", "paramiko", "rich"}),
        (["trace", "show", "--help"], {"bob.catalogue", "libvirt", "numpy", "pandas", "paramiko"}),
    ],
    ids=" ".join,
)
def test_help_loads_only_what_it_shows(words: list[str], slow: set[str]) -> None:
    """What takes time to load is loaded when it is used: `bob --help` is there in a tenth of a second."""
    script = f"""
import sys
from bob.cli.main import run
code = run({words!r})
loaded = {slow!r} & set(sys.modules)
sys.exit(f"loaded: {{loaded}}" if loaded else code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    if words == ["--help"]:
        assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


# Completion


def completed(bob: Bob, monkeypatch: pytest.MonkeyPatch, shell: str, line: str) -> list[str]:
    """What Tab offers behind ``line``, in the words of a shell's own script."""
    words = line.split(" ")
    monkeypatch.setenv("_BOB_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words[:-1]) if shell == "fish" else line)
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    ended = bob()
    assert (ended.code, ended.err) == (0, "")
    match shell:
        case "bash":
            return [entry.partition(",")[2] for entry in ended.out.split()]
        case "zsh":  # a type, the word, and its help, a line each
            return ended.out.splitlines()[1::3]
    lines = [entry.partition(",")[2] for entry in ended.out.splitlines()]
    return [entry.partition("\t")[0] for entry in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bob pro", {"probe"}),
        ("bob runs re", {"remove"}),
        ("bob probe --mk", {"--mkfs-opts"}),
        ("bob probe --exp", {"--expect"}),
        ("bob matrix --ju", {"--junit"}),
        ("bob probe --fs ext", {"ext2", "ext3", "ext4", "ext4-nojournal"}),
        ("bob probe --fs ext4 --property append-a", {"append-append-same-file", "append-any"}),
        ("bob probe --fs ext4 --rows units --property append.b", {"append.block"}),
        ("bob search --fs ext4 --property overw", {"overwrite-any"}),
        ("bob matrix --set osd", {"osdi14"}),
        ("bob probe --image debian-bo", {"debian-bookworm", "debian-bookworm-more"}),
        ("bob probe --write-cache v", {"volatile"}),
        ("bob app replace-m", {"replace-mv"}),
        ("bob app run replace-m", {"replace-mv"}),
        ("bob app replace-mv --fs btr", {"btrfs"}),
        ("bob image rm --he", {"--help"}),
        ("bob app run sqlite-wal --model ext4-or", {"ext4-ordered"}),
        ("bob app run sqlite-wal --model al", {"all"}),
        ("bob apm what-if ext4-or", {"ext4-ordered"}),
        ("bob apm what-if ext4-o + --app replace-m", {"replace-mv"}),
        ("bob reproduce ccfs --app git", {"git-commit"}),
        ("bob search --fs ext4 --bounds ace-", {"ace-metadata"}),
        ("bob compare osd", {"osdi14"}),
        ("bob probe --expect osd", {"osdi14"}),
    ],
)
def test_shell_completion(bob: Bob, monkeypatch: pytest.MonkeyPatch, shell: str, line: str, offered: set[str]) -> None:
    assert set(completed(bob, monkeypatch, shell, line)) == offered


def test_wherever_a_path_can_stand_the_shell_offers_files() -> None:
    """Behind an argument or option that takes a path, Tab is not silent: click itself offers nothing there."""
    paths = re.compile(r"\b(FILE|DIR|RUN|OUT|TABLE|WITNESS|A|B)\b")
    silent = [
        f"{context.command_path} {parameter.opts[0]}"
        for context in CONTEXTS
        for parameter in context.command.params
        if paths.search(str(parameter.metavar or parameter.human_readable_name.upper()))
        and not any(item.type in ("file", "dir") for item in parameter.shell_complete(context, "no such name"))
    ]
    assert silent == []


def test_nobody_is_told_of_a_mistake_who_presses_tab(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bob.toml").write_text("wrong")
    monkeypatch.setenv("_BOB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "bob probe --image deb")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert bob() == Ended(0, "", "")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program bob, as a shell finds it."""
    made = tmp_path / "bin" / "bob"
    made.parent.mkdir()
    made.write_text(f'#!/bin/sh\nexec {sys.executable} -m bob "$@"\n')
    made.chmod(0o755)
    monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parents[1]))


SHELLS = {
    "bash": """
COMP_WORDS=(bob probe --fs ext4 --property append-an); COMP_CWORD=5
_bob_completion bob; echo "${COMPREPLY[@]}"
""",
    "zsh": """
compadd() { print -- "${completions[@]}" }
words=(bob probe --fs ext4 --property append-an); CURRENT=6
_bob_completion
""",
    "fish": "complete --do-complete 'bob probe --fs ext4 --property append-an'",
}
"""What a shell itself makes of its script. In zsh, completion works at a prompt only: compadd stands in for that."""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.usefixtures("program")
def test_a_shell_itself(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    [line] = [line.strip() for line in EPILOG.splitlines() if f"{shell}_source" in line]
    before = "autoload -U compinit; compinit -u -D" if shell == "zsh" else ""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = subprocess.run(
        [shell, "-c", f"{before}\n{line}\n{SHELLS[shell]}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["append-any"]


# Manual pages


def test_there_is_a_page_of_each_command(bob: Bob) -> None:
    ended = bob("man", "here")
    names = [context.command_path.replace(" ", "-") for context in CONTEXTS]
    assert ended == Ended(0, snapshot("wrote 46 pages into here/man1\n"), "")
    assert sorted(path.name for path in Path("here/man1").iterdir()) == sorted(f"{name}.1" for name in names)
    assert bob("man", "here").code == 0  # they are written anew
    Path("file").touch()
    ended = bob("man", "file")
    assert ended.code == 2
    assert text_with(ended.err, "DIR", "file") == snapshot("""\
bob: DIR: file is not a directory
hint: name another one
""")
    Path("other").mkdir()
    Path("other/man1").touch()
    ended = bob("man", "other")
    assert (ended.code, ended.err.splitlines()[0]) == (2, snapshot("bob: cannot create other/man1: File exists"))


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed: apt-get install groff")
@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_a_page_says_what_the_help_says(context: click.Context) -> None:
    """As man shows it: no warning, and each word and each line of an example is there."""
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-P-cbou", "-rLL=100n"],
        input=man_page(context),
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    lines = [line.strip() for line in shown.stdout.splitlines()]
    help_text = context.get_help()
    examples = re.findall(r"^ {4}(\S.*)$", help_text, flags=re.M) if "Examples:" in help_text else []
    assert [line for line in examples if line.startswith("bob ") and line.strip() not in lines] == []
    options = {option for parameter in context.command.params for option in parameter.opts if option[0] == "-"}
    assert {"--help", *options} <= set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown.stdout))
    told = set(re.findall(r"\w+", re.sub(r"-\s*\n\s*", "", shown.stdout)))
    body = (context.command.help or "").partition("\b")[0]
    assert set(re.findall(r"\w+", body)) - told == set()
