"""What the answer of a model costs, it costs alone: neither another model's answer nor that of the file system."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import samples_of_runs as samples
from bob.agent.client import AgentBroken
from bob.agent.inside.mounts import ROOT
from bob.apm.named import named_models
from bob.catalogue.request import ProbeRequest
from bob.claim.verdict import Verdict
from bob.errors import GuestError, UsageError
from bob.judge.modelled import unknown
from bob.judge.reliance import Explaining
from bob.observe.observation import Node
from bob.program.strace import SystemCall
from bob.program.transcript import ProgramCase, Transcript
from bob.progress import Silent
from bob.run import program_models
from bob.run.pool import ProgramGuests
from bob.run.program_models import UNKNOWN, ModelAnswer, hold_against
from bob.run.program_protocol import MOST_BYTES, CannotBeModelled, protocol_of

MODELS = named_models(["ext4-ordered", "xfs"])
DIRECTORY = {"/": Node("directory", 1, 2, mode=0o755)}


def in_hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def case(*calls: SystemCall) -> ProgramCase:
    return samples.program_case(Transcript(b"", calls, 7, (), None))


def opened(name: str = "f") -> SystemCall:
    return SystemCall(1, 0.0, "creat", (f'"{in_hex(f"{ROOT}/{name}")}"', "0644"), 3, f"{ROOT}/{name}")


def on_file(name: str, *arguments: str) -> SystemCall:
    return SystemCall(1, 0.0, name, (f"3<{in_hex(f'{ROOT}/f')}>", *arguments), 0)


def held(one: ProgramCase, tmp_path: Path) -> list[ModelAnswer]:
    def keep(trace: str) -> str:
        (tmp_path / "broken.txt").write_text(trace)
        return "broken.txt"

    nothing: Any = None
    request, said = ProbeRequest(one.subject), Silent()
    answers, _steps = hold_against(
        ProgramGuests(nothing, nothing, said), one, request, MODELS, 1, lambda _name: Explaining(keep)
    )
    return answers


@pytest.mark.parametrize(
    "calls",
    [
        (on_file("ftruncate", str(64 << 30)),),
        (on_file("ftruncate", str(64 << 30)), on_file("ftruncate", "0")),
        (on_file("fallocate", "FALLOC_FL_KEEP_SIZE", "0", str(64 << 30)),),
        (on_file("fallocate", "0", str(64 << 30), "1"),),
        (on_file("ftruncate", str(MOST_BYTES + 1)),),
    ],
)
def test_a_file_that_is_too_large_for_models_is_refused_by_its_size(
    calls: tuple[SystemCall, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 GiB of nothing were put together in memory."""
    monkeypatch.setattr(program_models, "both_ends", lambda *_: (DIRECTORY, {**DIRECTORY, "/f": Node("file", 2)}))
    answers = held(case(opened(), *calls), tmp_path)
    assert {one.result.answer.verdict for one in answers} == {Verdict.UNKNOWN}
    assert all("256 MiB" in (one.result.answer.reason or "") for one in answers), answers[0].result.answer.reason


def test_a_file_of_the_setup_is_counted_and_a_smaller_one_is_followed() -> None:
    large = {**DIRECTORY, "/g": Node("file", 2, size=MOST_BYTES)}
    with pytest.raises(CannotBeModelled, match="257 MiB"):
        protocol_of(case(opened(), on_file("ftruncate", "4097")), large, large)
    after = {**DIRECTORY, "/f": Node("file", 2, size=1 << 20, content=bytes(1 << 20), mode=0o644)}
    again, _notes = protocol_of(case(opened(), on_file("ftruncate", str(1 << 20))), DIRECTORY, after)
    assert again.effects.extent == 1 << 20


@pytest.mark.parametrize("broken", [MemoryError(), KeyError(3), RecursionError("deep"), UsageError("not spoken of")])
def test_an_error_in_what_models_share_costs_their_answers_alone(
    broken: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise broken

    monkeypatch.setattr(program_models, "both_ends", ends)
    answers = held(case(), tmp_path)
    assert [one.result.name for one in answers] == [model.name for model in MODELS]
    said = "not spoken of" if isinstance(broken, UsageError) else type(broken).__name__
    found = [one.result.answer for one in answers]
    assert all(one.verdict is Verdict.UNKNOWN and said in (one.reason or "") for one in found)
    assert isinstance(broken, UsageError) or "Traceback" in (tmp_path / "broken.txt").read_text()


def test_an_error_in_one_model_costs_no_other_and_an_agent_that_failed_is_told_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_work: object, model: Any, _notes: object, _explaining: object) -> ModelAnswer:
        if model is MODELS[0]:
            raise MemoryError
        return ModelAnswer(model, unknown(model.name, model.about, "asked"), UNKNOWN)

    monkeypatch.setattr(program_models, "both_ends", lambda *_: (DIRECTORY, DIRECTORY))
    monkeypatch.setattr(program_models, "checkers_for", lambda *_: SimpleNamespace(differing=None))
    monkeypatch.setattr(program_models._ModelledProgram, "look", look)
    first, second = held(case(), tmp_path)
    assert "MemoryError" in (first.result.answer.reason or "") and second.result.answer.reason == "asked"

    def lost(*_: object) -> None:
        raise AgentBroken("the agent failed at observe")

    monkeypatch.setattr(program_models, "both_ends", lost)
    assert {one.result.answer.reason for one in held(case(), tmp_path)} == {"the agent failed at observe"}


@pytest.mark.parametrize("error", [GuestError("no guest can be started"), OSError(28, "full")])
def test_what_stops_all_else_too_stops_models(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise error

    monkeypatch.setattr(program_models, "both_ends", ends)
    with pytest.raises(type(error)):
        held(case(), tmp_path)
