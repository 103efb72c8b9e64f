"""What is no scheduler is refused before anything is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bob.cli.main import run
from bob.errors import Exit, UsageError
from bob.run import scheduler
from bob.run.scheduler import address_of, reached

WRONG = {
    "a word": ("nonsense", "nonsense is neither a scheduler's address nor a file"),
    "no file": ("./missing.json", "./missing.json is neither"),
    "a folder": (".", ". is neither"),
    "nothing": ("", " is neither"),
    "no JSON": ("words.json", "words.json is not a scheduler's file: it lacks an address"),
    "no address": ("empty.json", "empty.json is not a scheduler's file"),
    "a list": ("list.json", "list.json is not a scheduler's file"),
    "no text": ("number.json", "number.json is not a scheduler's file"),
    "another scheme": ("xyz://here:1", "no scheduler answers at xyz://here:1: unknown address scheme"),
    "no port": ("tcp://localhost", "no scheduler answers at tcp://localhost: missing port number"),
    "no host": ("tcp://", "no scheduler answers at tcp://: missing port"),
    "a closed port": ("127.0.0.1:1", "no scheduler answers at 127.0.0.1:1"),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 0.5)
    reached.cache_clear()
    for name, text in {"words": "x = 1", "empty": "{}", "list": "[]", "number": '{"address": 3}'}.items():
        Path(f"{name}.json").write_text(text)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_scheduler_is_refused_in_a_line(what: str, capfd: pytest.CaptureFixture[str]) -> None:
    said, message = WRONG[what]
    with pytest.raises(UsageError) as refused:
        reached(said)
    assert refused.value.message.startswith(message) and refused.value.hint
    assert capfd.readouterr() == ("", ""), "Dask says nothing of its own"


@pytest.mark.parametrize("address", ["tcp://server:8786", "tls://[::1]:8786", "server:8786", "inproc://1.2.3.4/5/6"])
def test_an_address_stands_alone_or_in_a_file(address: str) -> None:
    Path("scheduler.json").write_text(json.dumps({"type": "Scheduler", "id": "x", "address": address}))
    assert address_of(address) == address == address_of("scheduler.json")


@pytest.mark.parametrize("words", ["matrix --set osdi14", "search --fs ext4", "app run replace-rename --fs ext4"])
def test_a_refused_scheduler_leaves_no_run(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended = run([*words.split(), "--scheduler", "tcp://127.0.0.1:1", "--out", "run"])
    assert ended == Exit.USAGE
    assert capsys.readouterr().err.startswith("bob: no scheduler answers at tcp://127.0.0.1:1")
    assert not Path("run").exists()
