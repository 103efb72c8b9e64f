"""Programs on real guests: planted bugs are found, their mended twins are not accused, witnesses replay, and a checker
that cannot be trusted is not."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from bob import documents
from bob.agent.client import Agent
from bob.answer.answer import Cross, Way
from bob.answer.result import Allowed, Checks, Result, SubjectResult
from bob.apm.builtin import SOFT, builtin
from bob.apm.clauses import every_clause
from bob.apm.model import Model, load
from bob.apm.named import named_model
from bob.apm.what_if import what_if
from bob.catalogue.request import CheckPlace, Host, ProbeRequest
from bob.claim.verdict import Verdict
from bob.cli.ci import exit_of
from bob.errors import Exit, UsageError
from bob.judge.modelled import change
from bob.observe import explore
from bob.observe.observations import without_numbers
from bob.program.answer import Consequence
from bob.program.program import Pace, Program, ProgramDocument, ProgramFile
from bob.progress import Silent
from bob.protocol.contrast import Reliance
from bob.protocol.diagram import StepKind
from bob.record import recorder
from bob.record.base import make_program_base
from bob.record.recorder import RecordedProgram, record_program
from bob.report.protocol_drawing import picture
from bob.report.saved import load as load_result
from bob.resources import shipped
from bob.run import program_recording, programs
from bob.run import shrink as shrinking
from bob.run.pool import ProgramGuests
from bob.run.programs import preflight, try_program
from bob.run.replay import replay
from bob.run.shrink import shrink
from bob.schema import encode
from bob.story.timeline import ProgramCallEvent
from bob.subject import Subject, configuration
from bob.trace.base import Base
from bob.witness import document as witness
from bob.witness.results import tell_results
from planted_in_c import PLANTED_IN_C, compiled
from planted_programs import LIBRARY, PLANTED, fault, model_of
from tests.apm.cases import LETTER_OF_POSIX, model
from wording import line_with

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("warm_guests")]
MADE = "touch f; mknod n c 1 3"
SHELL = "#!/bin/sh\n"
BY_NAME = {planted.name: planted for planted in PLANTED}
IN_C = {planted.name: planted for planted in PLANTED_IN_C}


def request(fs: str = "ext4", options: str = "") -> ProbeRequest:
    return ProbeRequest(configuration(fs, "", options), budget=60)


def ask(program: Program, out: Path, asked: ProbeRequest | None = None) -> SubjectResult:
    answers, path = try_program(program, [asked or request()], out, Silent())
    assert path == out
    [subject] = answers.file_systems
    return subject


def checks(found: SubjectResult) -> Checks:
    """How the checker looked."""
    assert found.checks is not None
    return found.checks


def allowed(found: SubjectResult) -> Allowed:
    """How much was tried of a model."""
    assert found.model is not None
    return found.model


def by_consequence(found: SubjectResult) -> dict[Consequence | None, Way]:
    """The ways to break a program, by what they do to it."""
    return {way.consequence: way for way in found.answer.ways}


def scripts(workload: str, check: str = 'test -e "$1/f"', setup: str = "touch f") -> Program:
    texts = {"setup": setup, "workload": workload, "check": check}
    return Program(
        "p", "", tuple(ProgramFile(name, f"#!/bin/sh\n{text}\n".encode(), True) for name, text in texts.items())
    )


@pytest.mark.parametrize("name", ["rename-before-fsync", "acknowledged-before-fsync"])
def test_a_planted_bug_is_found_and_its_witness_replays(tmp_path: Path, name: str) -> None:
    found = ask(BY_NAME[name].program(mended=False), tmp_path)
    assert found.answer.verdict is Verdict.FAILS
    for one in found.answer.ways:
        assert one.witness is not None
        [shown] = replay([tmp_path / one.witness], image=None, connect=None, times=2, progress=Silent())
        assert (shown.confirmed, shown.times) == (2, 2)
        assert one.evidence.partition(":")[0] in shown.evidence
        line = witness.read(tmp_path / one.witness).timeline
        assert any(event.there == "missing" for event in line.events if isinstance(event, ProgramCallEvent))


@pytest.mark.parametrize(
    ("name", "reliance", "first", "then"),
    [
        ("rename-before-fsync", Reliance.ORDER, "workload: append 4 bytes at 0 of /tmp", "mv: rename /tmp to /f"),
        pytest.param(
            *("no-fsync-of-the-directory", Reliance.DURABLE, "mv: rename /f.tmp to /f", ""), marks=pytest.mark.long
        ),
        pytest.param(
            *("two-blocks-in-place", Reliance.WHOLE, "dd: overwrite 8192 bytes at 0 of /f", ""), marks=pytest.mark.long
        ),
    ],
)
def test_a_planted_bug_is_explained_by_its_calls(
    tmp_path: Path, name: str, reliance: Reliance, first: str, then: str
) -> None:
    found = ask(BY_NAME[name].program(mended=False), tmp_path)
    said = {(one.explanation.reliance, one.sentence) for each in found.answer.ways for one in each.relied_on}
    assert any(one is reliance and first in sentence and then in sentence for one, sentence in said), said


def test_at_another_pace_the_kernel_leaves_what_an_undisturbed_machine_never_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ext4 commits two directories together, unless the second comes seconds later. And the name of a new file is
    committed before its data where another process asks for it. A witness is shrunk at its own pace, and recorded once
    more where a recording happens not to show it. Models are held against what each pace leaves: the one that was
    derived of ext4 allows all of it."""
    program = scripts(
        "mkdir one; mkdir two; head -c 8192 /dev/zero | tr '\\0' x > f.tmp; mv f.tmp f",
        'cd "$1" && { test -d one || test ! -d two; } && { test -d two || test ! -d one; } || exit 1; '
        'test "$(cat f)" = old || { test "$(tr -d x < f | wc -c)" = 0 && test "$(wc -c < f)" = 8192; } || exit 11',
        "echo old > f",
    )
    requests = [replace(request(), pace=pace) for pace in (Pace.UNDISTURBED, Pace.SLOW, Pace.BUSY)]
    models = [model(every_clause(), "too-strong"), named_model("ext4-ordered")]
    answers, _path = try_program(program, requests, tmp_path, Silent(), models)
    assert [subject.name for subject in answers.file_systems] == ["ext4", "ext4-slow", "ext4-busy"]
    too_strong, derived = ({one.configuration for one in allowed(found).missed} for found in answers.models)
    assert (too_strong, derived) == ({"ext4-busy"}, set()), "what the slow pace leaves is a beginning of the program"
    assert all(one.clauses for found in answers.models for one in allowed(found).missed)
    assert not any("could not decide whether" in note for found in answers.models for note in found.notes)
    undisturbed, slow, busy = map(by_consequence, answers.file_systems)
    assert answers.file_systems[0].answer.verdict is Verdict.HOLDS, undisturbed
    assert Consequence.OTHER in slow
    assert Consequence.CORRUPT in busy
    # Since a commit comes after the file was made, too, what is there with the rename is a part of the append: zeros.
    reasons = {one.sentence for one in busy[Consequence.CORRUPT].relied_on}
    append = "‘tr: append 8192 bytes at 0 of /f.tmp’"
    expected = f"must be there whole or not at all: {append}", f"must be there first: {append}; then ‘mv: rename"
    assert any(reason.startswith(expected) for reason in reasons), reasons
    path = tmp_path / (busy[Consequence.CORRUPT].witness or "")
    paces: list[Pace] = []

    def without_luck_at_first(agent: Agent, on: Subject, base: Base, of: Program, **how: Any) -> RecordedProgram:
        paces.append(of.pace)
        return record_program(agent, on, base, of if paces[1:] else replace(of, pace=Pace.UNDISTURBED), **how)

    monkeypatch.setattr(shrinking, "record_program", without_luck_at_first)
    [smaller] = shrink([path], image=None, connect=None, budget=30, progress=Silent())
    assert smaller.document is not None
    assert set(paces[1:]) == {Pace.BUSY}, "the undisturbed recording shows nothing"
    tell_results(tmp_path)


def test_something_comes_between_an_empty_mark_and_what_it_marks(tmp_path: Path) -> None:
    """No pace waited after an open, and bob called this safe, though with a pause of its own it breaks."""
    program = scripts(
        ": > valid; mv f.new f; sync . ; echo done",
        'test ! -e "$1/valid" || test "$(cat "$1/f")" = new || exit 11; test -e "$1/f"',
        "echo old > f; echo new > f.new",
    )
    requests = [replace(request(), pace=pace) for pace in (Pace.SLOW, Pace.BUSY)]
    answers, _path = try_program(program, requests, tmp_path, Silent())
    for subject in answers.file_systems:
        assert set(by_consequence(subject)) == {Consequence.CORRUPT}, subject.answer.reason


@pytest.mark.long
def test_what_btrfs_commits_by_itself_every_thirty_seconds_is_waited_for(tmp_path: Path) -> None:
    """A file is emptied and written anew in two calls, and btrfs commits in between. At the pace of file systems that
    commit every five seconds it did not, and bob called this safe."""
    program = scripts(
        "dd if=/dev/zero of=f bs=4096 count=2 conv=fsync status=none",
        'case $(wc -c < "$1/f") in 4 | 8192) exit 0 ;; *) exit 11 ;; esac',
        "echo old > f",
    )
    requests = [replace(request("btrfs"), pace=pace) for pace in (Pace.SLOW, Pace.SLOWER)]
    answers, _path = try_program(program, requests, tmp_path, Silent())
    slow, slower = answers.file_systems
    assert (slow.answer.verdict, slower.answer.verdict) == (Verdict.HOLDS, Verdict.FAILS)
    assert set(by_consequence(slower)) == {Consequence.CORRUPT}


@pytest.mark.parametrize("fs", ["btrfs", pytest.param("reiserfs", marks=pytest.mark.long)])
def test_on_a_busy_machine_what_a_call_did_is_committed_before_the_next(tmp_path: Path, fs: str) -> None:
    """On these two it was not, and bob called safe at this pace what it had not tried. A directory that was told is
    there, and so is the file before its data."""
    program = scripts(
        "mkdir one; echo one; mkdir two; echo two; echo word > f; echo three",
        'cd "$1"; for name in one two; do grep -q $name "$2" && { test -d $name || exit 10; }; done; '
        "test ! -e f || test -s f || exit 11",
        "true",
    )
    answers, _path = try_program(program, [replace(request(fs), pace=Pace.BUSY)], tmp_path, Silent())
    [busy] = answers.file_systems
    assert set(by_consequence(busy)) == {Consequence.CORRUPT}, busy
    assert checks(busy).windows == 4 and checks(busy).runs > 4


def test_the_model_of_btrfs_allows_a_rename_over_a_file_before_its_data(tmp_path: Path) -> None:
    """It forbade that, as no workload that it was derived of had a commit just after the rename."""
    program = scripts(
        "head -c 8192 /dev/zero | tr '\\0' x > f.tmp; mv f.tmp f",
        'cd "$1"; test "$(cat f)" = old || test "$(wc -c < f)" = 8192 || exit 11',
        "echo old > f",
    )
    derived = load(shipped("reports/models") / "osdi14-linux-6.1" / "btrfs.json")
    requests = [replace(request("btrfs"), pace=Pace.BUSY)]
    answers, _path = try_program(program, requests, tmp_path, Silent(), [derived])
    [busy], [model_of_btrfs] = answers.file_systems, answers.models
    assert set(by_consequence(busy)) == {Consequence.CORRUPT}
    assert not allowed(model_of_btrfs).missed
    assert [one.cross for one in model_of_btrfs.answer.ways] == [Cross.CONFIRMED]


def test_a_witness_of_a_program_is_shrunk_and_replays(tmp_path: Path) -> None:
    """What it says stays, no more writes are off a clean prefix, and the story has the decisive write and the calls."""
    found = ask(BY_NAME["acknowledged-before-fsync"].program(mended=False), tmp_path)
    for one in found.answer.ways:
        path = tmp_path / (one.witness or "")
        before = witness.read(path)
        [smaller] = shrink([path], image=None, connect=None, budget=30, progress=Silent())
        assert smaller.document is not None
        assert smaller.after.departure <= before.size.departure
        path.write_text(json.dumps(smaller.document))
        after = witness.read(path)
        assert without_numbers(after.evidence) == without_numbers(before.evidence)
        assert (after.claim, after.shrunk_from) == (before.claim, before.size)
        assert {event.words for event in after.timeline.calls} >= {"tells 'saved'"}
        [shown] = replay([path], image=None, connect=None, times=2, progress=Silent())
        assert (shown.confirmed, shown.times) == (2, 2)
    tell_results(tmp_path)


def test_a_witness_whose_program_was_mended_does_not_show_again(tmp_path: Path) -> None:
    planted = BY_NAME["acknowledged-before-fsync"]
    [one, *_] = ask(planted.program(mended=False), tmp_path).answer.ways
    path = tmp_path / (one.witness or "")
    document = documents.opened(path.read_bytes())
    mended = encode(ProgramDocument.of(planted.program(mended=True)))
    path.write_text(json.dumps({**document, "program": mended}))
    [shrunk] = shrink([path], image=None, connect=None, budget=10, progress=Silent())
    assert shrunk.document is None and shrunk.before == shrunk.after


@pytest.mark.parametrize("name", ["rename-before-fsync"])
def test_its_mended_twin_is_not_accused(tmp_path: Path, name: str) -> None:
    found = ask(BY_NAME[name].program(mended=True), tmp_path)
    assert found.answer.verdict is Verdict.HOLDS
    assert found.answer.states.explored > 1 and checks(found).windows == 2 and checks(found).trees > 2


def test_a_window_at_which_the_agent_failed_is_explored_by_another_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent of the first guest fails for good reason: it is asked what it does not know."""
    agents: list[Agent] = []
    beginning = explore._WorkloadExploration._begin

    def fail_once(exploration: explore._WorkloadExploration, *disks: Any, **traced: Any) -> Any:
        agents.append(exploration.agent)
        if len(agents) == 1:
            exploration.agent.ask("nosuchrequest", timeout=60)
        return beginning(exploration, *disks, **traced)

    monkeypatch.setattr(explore._WorkloadExploration, "_begin", fail_once)
    found = ask(BY_NAME["rename-before-fsync"].program(mended=True), tmp_path, replace(request(), host=Host(None, 1)))
    assert (found.answer.verdict, found.answer.reason, checks(found).windows) == (Verdict.HOLDS, None, 2)
    assert len(agents) == 3 and agents[0] is not agents[1] and agents[1] is agents[2]


def test_an_output_counts_from_when_it_was_told(tmp_path: Path) -> None:
    """Told, then synced: the loss shows only to the checker that is told of the output before the sync."""
    found = ask(BY_NAME["acknowledged-before-fsync"].program(mended=False), tmp_path)
    lost = [one for one in found.answer.ways if one.consequence is Consequence.LOST]
    assert [one.output for one in lost] == [b"saved\n"]


def test_a_server_that_the_checker_starts_is_gone_before_the_next_state(tmp_path: Path) -> None:
    check = (
        LIBRARY
        + """
if [ -e /root/alive ] && kill -0 "$(cat /root/alive)"; then exit 13; fi
sleep 1000 & echo $! > /root/alive
[ -e f ]
"""
    )
    found = ask(scripts("touch g; sync .", check), tmp_path)
    assert found.answer.verdict is Verdict.HOLDS and checks(found).runs > 1


def test_a_program_may_run_as_another_user(tmp_path: Path) -> None:
    """As servers do, which give up root's rights."""
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"
    check = LIBRARY + f"[ -e f ] || exit 1\n{nobody} cat mine/data > /dev/null || corrupt 'it cannot be read'"
    setup = "touch f; mkdir mine; echo old > mine/data; chown -R 65534 mine"
    found = ask(scripts(f"{nobody} sh -c 'echo new > mine/new; mv mine/new mine/data; sync'", check, setup), tmp_path)
    assert found.answer.verdict is Verdict.HOLDS and checks(found).runs > 1


def test_a_checker_does_not_see_what_another_one_left_in_tmp(tmp_path: Path) -> None:
    check = LIBRARY + "[ -e f ] || exit 1\nfor name in /tmp/left /dev/shm/left; do\n"
    check += '[ ! -e $name ] || corrupt "$name is left"\ntouch $name\ndone'
    found = ask(scripts("touch /tmp/left g; sync .", check), tmp_path)
    assert found.answer.verdict is Verdict.HOLDS and checks(found).runs > 1


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (scripts("echo no >&2; exit 3"), "workload failed \\(3\\): no"),
        (
            scripts("fallocate -l 20M a; fallocate -l 20M b"),
            "workload failed \\(1\\): .*; the file system is full: device_mib",
        ),
        (scripts("sleep 1000"), "workload did not end within 5 s"),
        (scripts("touch g", setup="exit 4"), "setup failed \\(4\\)"),
        (
            scripts("touch g", check="echo no; exit 1"),
            "the checker refuses the tree after the setup, with no output: no",
        ),
        (scripts("rm f; sync"), "the checker refuses the tree after a clean end"),
        (scripts("umount -l $1"), "a script has unmounted the directory under test"),
        (scripts("touch g", check="true"), "the checker accepts an emptied directory"),
        (scripts("./nothing"), "workload failed \\(127\\)"),
        (scripts("touch g", check='test -e "$1/f" || ./nothing'), "the checker does not judge an emptied directory"),
        (scripts("touch g", check='test -e "$1/f" || sleep 1000'), "the checker does not judge an emptied directory"),
    ],
)
def test_what_cannot_be_run_or_trusted_is_said_and_nothing_is_explored(
    program: Program, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "frames_of", None)
    with pytest.raises(UsageError, match=said) as refused:
        preflight(replace(program, seconds=5.0), [request()], Silent())
    assert refused.value.hint


def test_a_checker_that_cannot_be_trusted_is_said_before_bob_looks_at_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "frames_of", None)
    with pytest.raises(UsageError, match="the checker accepts an emptied directory"):
        try_program(scripts("touch g", check="true"), [request()], tmp_path / "run", Silent())


def test_a_checker_that_answers_by_chance_is_not_believed(tmp_path: Path) -> None:
    """It refuses every other call."""
    check = LIBRARY + "[ -e f ] || exit 1\nn=$(cat /root/n 2>/dev/null || echo 0)\necho $((n + 1)) > /root/n\n"
    check += 'case $2 in *) [ "$n" -lt 3 ] || [ $((n % 2)) = 0 ] || lost "by chance" ;; esac'
    found = ask(scripts("for n in 1 2 3 4; do touch g$n; sync .; done", check), tmp_path)
    assert found.answer.verdict is Verdict.UNKNOWN
    assert "contradicts itself" in (found.answer.reason or "")


def test_trees_that_differ_in_what_no_property_asks_about_are_two(tmp_path: Path) -> None:
    """A fifo in the place of a device, and the mode of the root: a program can see both."""
    check = (
        LIBRARY + '[ -e f ] || exit 1\n[ ! -p n ] || corrupt "a fifo"\n[ "$(stat -c %a .)" != 700 ] || lost "closed"'
    )
    found = ask(
        scripts("rm n; mkfifo n; sync; chmod 700 .; sync; rm n; mknod n c 1 3; sync; chmod 755 .; sync", check, MADE),
        tmp_path,
    )
    assert set(by_consequence(found)) == {Consequence.CORRUPT, Consequence.LOST}


def test_what_is_far_in_a_file_and_flags_and_times_to_come_make_trees_of_their_own(tmp_path: Path) -> None:
    """Of the two times to come only the first is durable, and of two pages at 5 GiB any may be there alone."""
    write = "printf '%8192s' | tr ' ' $1 | dd of=far bs=8192 seek=655360 conv=notrunc 2> /dev/null"
    workload = (
        f"write() {{ {write}; }}\nchattr +A f; sync .; echo flag; touch -d @4102444800 f; sync .; echo early\n"
        "write n; sync; touch -d @4102531200 f; echo late"
    )
    check = LIBRARY + (
        "[ -e f ] || exit 1\n"
        'if told flag; then case "$(lsattr f)" in *A*) ;; *) echo no flag; exit 12 ;; esac; fi\n'
        'if told late && [ "$(stat -c %Y f)" != 4102531200 ]; then lost "the time is another"; fi\n'
        "there=$(dd if=far bs=4096 skip=1310720 count=2 2> /dev/null | tr -s on)\n"
        '[ "$there" = o ] || [ "$there" = n ] || corrupt "$there is far in the file"'
    )
    found = ask(scripts(workload, check, f"touch f; write() {{ {write}; }}; write o; truncate -s 6G far"), tmp_path)
    assert set(by_consequence(found)) == {Consequence.CORRUPT, Consequence.LOST}
    assert not found.notes or not any("contradicts" in note for note in found.notes)


def test_what_scripts_leave_mounted_is_taken_away(tmp_path: Path) -> None:
    """A file system in it, it itself elsewhere, over it, a disk and swap on its files: none is there for the next."""
    leave = (
        "mkdir -p m; mount -t tmpfs none m; mkdir -p /tmp/elsewhere; mount --bind . /tmp/elsewhere; "
        "losetup -f --show image; mkswap -q swap; swapon swap; "
    )
    setup = "touch f; truncate -s 1M image; fallocate -l 1M swap; chmod 600 swap; mkdir m;"
    check = LIBRARY + (
        "[ -e f ] || exit 1\n! grep -q /swap /proc/swaps || corrupt swap\n"
        '! mountpoint -q m || corrupt mounted\n[ -z "$(losetup -a | grep /image)" ] || corrupt loop\n'
    )
    found = ask(scripts(leave + "mount --bind . .; touch g; sync", check + leave + "exit 0", setup), tmp_path)
    assert (found.answer.verdict, found.answer.reason) == (Verdict.HOLDS, None)
    assert checks(found).runs > 1


def test_a_program_with_packages_runs_in_a_root_of_its_own(tmp_path: Path) -> None:
    edits = "printf '%s\\n' a hello . 'w g' q | ed -s > /dev/null; sync .; echo saved"
    program = scripts(edits, setup="ed --version && touch f")
    found = ask(replace(program, packages=("ed",)), tmp_path)
    assert found.answer.verdict is Verdict.HOLDS
    assert "changed, but not synced, when the program wrote its last output: /g" in found.notes


@pytest.mark.long
def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="lacks the package 'no-such-package-as-this'"):
        preflight(replace(scripts("true"), packages=("no-such-package-as-this",)), [request()], Silent())


POSIX = model(LETTER_OF_POSIX, "letter-of-posix")


def by_models(program: Program, out: Path, *models: Model, explores: bool = False) -> Result:
    answers, _path = try_program(program, [request()], out, Silent(), models, explores=explores)
    assert [one.name for one in answers.models] == [one.name for one in models]
    return answers


def kinds(found: SubjectResult) -> set[str]:
    return {relied.kind for one in found.answer.ways for relied in one.relied_on}


def test_a_model_finds_a_planted_bug_unless_it_forbids_it_and_the_mended_twin_is_safe(tmp_path: Path) -> None:
    """A rename before the fsync: POSIX allows that the name is there without the data; a model with safe rename not."""
    planted = BY_NAME["rename-before-fsync"]
    unsafe = what_if(builtin("ext4-o"), ["-safe rename"], "no-safe-rename").after
    models = (POSIX, builtin("ext4-o"), unsafe)
    weak, safe_rename, changed = by_models(planted.program(mended=False), tmp_path / "1", *models).models
    assert (weak.answer.verdict, safe_rename.answer.verdict) == (Verdict.FAILS, Verdict.HOLDS)
    asked = change(planted.name, safe_rename, changed)
    assert asked.added and not asked.mended and kinds(changed) == {"ordering: safe rename"}
    assert "ordering: safe rename" in kinds(weak)
    [one] = [one for one in weak.answer.ways if "f is there, and is not new" in one.evidence and not one.told]
    assert any("workload: append 4 bytes at 0 of /tmp" in relied.sentence for relied in one.relied_on)
    assert allowed(weak).is_all and allowed(safe_rename).is_all
    assert checks(weak).trees > checks(safe_rename).trees > 3
    assert checks(safe_rename).runs < checks(safe_rename).trees, (
        "what the checker said of a tree is known to the next model"
    )
    in_place = scripts("echo newer > f", 'cd "$1" && case $(cat f) in old|newer) ;; *) exit 11;; esac', "echo old > f")
    [soft] = by_models(in_place, tmp_path / "in-place", builtin(SOFT)).models
    assert (soft.answer.verdict, allowed(soft).is_all) == (Verdict.FAILS, True), "dead between truncate and write"
    for found in by_models(planted.program(mended=True), tmp_path / "2", POSIX, builtin("ext4-o")).models:
        assert (found.answer.verdict, allowed(found).is_all, found.answer.ways) == (Verdict.HOLDS, True, ())


@pytest.mark.parametrize(
    ("name", "mended"),
    [
        ("published-before-it-is-written", False),
        ("published-before-it-is-written", True),
        ("three-blocks-in-step", False),
    ],
)
def test_a_flaw_is_named_by_its_type_its_calls_and_their_lines_and_the_twin_is_not_accused(
    tmp_path: Path, name: str, mended: bool
) -> None:
    """bench/planted.py --models asks it of all pairs."""
    pair = IN_C[name]
    [found] = by_models(pair.program(mended=mended), tmp_path, model_of(pair)).models
    assert fault(pair, found, mended=mended) == "" and allowed(found).is_all


def stripped(packages: tuple[str, ...] = ()) -> Program:
    """One whose write is made by a static function, with an exported neighbour before it, and a caller behind."""
    source = """
        #include <fcntl.h>
        #include <unistd.h>
        int neighbour(int n) { return n + 1; }
        static __attribute__((noinline)) int hidden(int f) { return write(f, "new\\n", 4) + neighbour(0); }
        __attribute__((noinline)) int save(void) { return hidden(open("f", O_WRONLY | O_TRUNC)) + neighbour(1); }
        int main(void) { return save() + sleep(3) < 0; }
    """
    program = scripts("", 'grep -qx "old\\|new" "$1/f"', "echo old > f; sync")
    binary = ProgramFile("workload", compiled(source, "-rdynamic", "-s"), True)
    files = tuple(binary if one.path == "workload" else one for one in program.files)
    return replace(program, files=files, packages=packages)


def appends_of(program: Program, out: Path) -> set[str]:
    """What is said of the program's append, with the function that made it."""
    [found] = by_models(program, out, POSIX).models
    said = {relied.sentence for one in found.answer.ways for relied in one.relied_on}
    return {words for sentence in said for words in sentence.split("‘") if words.startswith("workload: append 4 bytes")}


@pytest.mark.parametrize("packages", [(), pytest.param(("libgdbm6",), marks=pytest.mark.long)])
def test_a_function_whose_name_was_stripped_is_not_called_by_that_of_its_neighbour(
    tmp_path: Path, packages: tuple[str, ...]
) -> None:
    """Also in a world, where strace sees the files of the program below another root."""
    assert appends_of(stripped(packages), tmp_path) == {"workload: append 4 bytes at 0 of /f (save in workload)’"}


@pytest.mark.long
def test_frames_of_a_program_that_takes_too_long_with_them_are_those_that_came_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "FRAMES_SECONDS", 1.0)
    assert appends_of(stripped(), tmp_path) == {"workload: append 4 bytes at 0 of /f (save in workload)’"}


def fail_to_look(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the run that looks at the frames end so: ``refused``, ``lost`` with its guest, or ``set up`` in vain."""
    bases = count(1)

    def look(agent: Agent, *_given: Any) -> str:
        agent.ask("nosuchrequest", timeout=60 if how == "refused" else 1e-6)
        return ""

    def make(*given: Any) -> Base:
        if next(bases) > 1 and how == "set up":
            raise UsageError("setup failed (1): it is there already")
        return make_program_base(*given)

    monkeypatch.setattr(program_recording, "trace_frames", look)
    monkeypatch.setattr(program_recording, "make_program_base", make)


@pytest.mark.parametrize("how", ["refused", *(pytest.param(how, marks=pytest.mark.long) for how in ("lost", "set up"))])
def test_without_frames_only_the_names_of_functions_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    fail_to_look(how, monkeypatch)
    assert appends_of(stripped(), tmp_path) == {"workload: append 4 bytes at 0 of /f’"}


@pytest.mark.long
@pytest.mark.parametrize("how", ["refused", "lost"])
def test_without_frames_a_witness_is_shrunk_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    fail_to_look(how, monkeypatch)
    found = ask(BY_NAME["acknowledged-before-fsync"].program(mended=False), tmp_path)
    assert "the stack frames of the calls are not known, so bob cannot name functions" in found.notes
    path = tmp_path / (found.answer.ways[0].witness or "")
    [smaller] = shrink([path], image=None, connect=None, budget=10, progress=Silent())
    assert smaller.document is not None


def test_what_a_model_predicts_is_confirmed_where_the_disk_shows_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a pace at which the program cannot be recorded it stays open."""

    def refused(guests: ProgramGuests, of: Program, asked: ProbeRequest, *rest: Any, **how: Any) -> Any:
        if asked.pace is Pace.SLOW:
            raise UsageError("workload failed (1): it gave up")
        return program_recording.record_program_run(guests, of, asked, *rest, **how)

    monkeypatch.setattr(programs, "record_program_run", refused)
    program = BY_NAME["acknowledged-before-fsync"].program(mended=False)
    requests = [request(), replace(request(), pace=Pace.SLOW)]
    answers, _path = try_program(program, requests, tmp_path, Silent(), [POSIX])
    [real, slow], [found] = answers.file_systems, answers.models
    [lost] = [one for one in found.answer.ways if one.consequence is Consequence.LOST]
    assert (slow.answer.verdict, slow.answer.reason) == (
        Verdict.UNKNOWN,
        snapshot("cannot be explored at this pace: workload failed (1): it gave up"),
    )
    assert lost.crossed == {real.name: Cross.CONFIRMED, slow.name: Cross.OPEN}
    assert lost.output == b"saved\n" and allowed(found).is_all
    assert not allowed(found).missed
    kept = load_result(tmp_path).result
    assert kept.subjects == answers.subjects and kept.models[0].answer.ways
    [protocol] = kept.protocols
    assert protocol.configuration == real.name
    steps = [(step.kind, step.told) for step in protocol.steps]
    assert (StepKind.SYNC, "") in steps and (StepKind.TOLD, "saved\n") in steps
    assert "must be durable by then" in picture(answers, is_dot=True)


def test_a_model_that_promises_too_much_is_told_by_the_disk(tmp_path: Path) -> None:
    """It says that each call is durable when it has returned: ext4 leaves trees that it does not allow."""
    program = BY_NAME["no-fsync"].program(mended=False)
    answers = by_models(program, tmp_path / "1", model(every_clause(), "too-strong"), explores=True)
    [real], [found] = answers.file_systems, answers.models
    assert (real.answer.verdict, found.answer.verdict) == (Verdict.FAILS, Verdict.HOLDS)
    [missed] = allowed(found).missed
    assert missed.evidence.startswith("lost acknowledged data") and not missed.is_wrong
    kernel = answers.environment.kernel
    derived = named_model("ext4-ordered")
    derived = replace(derived, source={**derived.source, "kernels": [kernel]})
    wrong = replace(derived, name="wrong", findings=model(every_clause()).findings)
    answers = by_models(program, tmp_path / "2", wrong, derived, explores=True)
    assert [[one.is_wrong for one in allowed(found).missed] for found in answers.models] == [[True], []]
    assert exit_of([answers]) is Exit.CONTRADICTED

    # Where models have their answers elsewhere, as on a cluster, what is left here is held against them all the same.
    elsewhere, _path = try_program(program, [request()], tmp_path / "3", Silent(), [wrong, derived], answers=False)
    assert [[one.is_wrong for one in allowed(found).missed] for found in elsewhere.models] == [[True], []]
    assert elsewhere.file_systems[0].answer.verdict is Verdict.FAILS
    assert not any(checks(one).trees for one in elsewhere.models)


def test_what_is_stored_through_a_mapping_is_held_against_a_model(tmp_path: Path) -> None:
    pair = IN_C["header-ahead-of-a-store"]
    [found] = by_models(pair.program(mended=False), tmp_path, model_of(pair)).models
    assert fault(pair, found, mended=False) == "" and allowed(found).is_all
    assert "a store through a mapping counts as done just before the program's next call" in found.notes


def test_stores_through_mappings_are_recorded_at_once_at_the_next_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = []

    def recording(*given: Any, **how: Any) -> RecordedProgram:
        stores.append(how["stores"])
        return record_program(*given, **how)

    monkeypatch.setattr(program_recording, "record_program", recording)
    program = IN_C["header-ahead-of-a-store"].program(mended=True)
    requests = [request(), replace(request(), pace=Pace.SLOW)]
    try_program(program, requests, tmp_path, Silent(), [POSIX], explores=False)
    assert stores == [False, True, True]
    every = [path.read_text() for path in sorted(tmp_path.glob("workloads/*/calls"))]
    assert len(every) == 2 and all(" store(" in one for one in every)


def test_on_the_host_a_checker_says_what_it_says_in_guests(tmp_path: Path) -> None:
    """To the letter: each way to break the program, and its reason."""
    program, found = BY_NAME["rename-before-fsync"].program(mended=False), []
    for place in (CheckPlace.HOST, CheckPlace.GUEST):
        asked = replace(request(), host=Host(checks=place))
        answers, _path = try_program(program, [asked], tmp_path / place, Silent(), (POSIX,), explores=False)
        found += answers.models
    on_host, in_guest = found
    assert on_host.answer == in_guest.answer and on_host.answer.verdict is Verdict.FAILS
    assert checks(on_host).runs > checks(in_guest).runs and checks(on_host).trees == checks(in_guest).trees
    [note] = set(on_host.notes) - set(in_guest.notes)
    assert note.startswith("the checker ran on the host, in sandboxes; guests ran it again on ")
    assert set(in_guest.notes) < set(on_host.notes)


def test_a_checker_that_answers_differently_on_the_host_is_not_believed(tmp_path: Path) -> None:
    """This one depends on the kernel, but on no tree of the trials."""
    asks = 'test -e "$1/f" && exit 0; test -s "$2" && exit 10; case "$(uname -r)" in 6.1.*) exit 0;; esac; exit 11'
    [found] = by_models(scripts("rm f; touch f; sync f .; echo done", asks), tmp_path, POSIX).models
    assert (found.answer.verdict, found.answer.reason) == (
        Verdict.UNKNOWN,
        snapshot(
            "the checker answers differently on the host and in a guest: of one tree and output it ends with 11 and with 0"
        ),
    )


def test_logs_of_a_program_are_not_in_the_states_of_a_model(tmp_path: Path) -> None:
    program = scripts(
        "echo more >> log; echo text > f; sync f; echo more >> log; echo saved",
        'test -e "$1/f" || { test -e "$1/log" && test ! -s "$2"; }',
        setup="echo first > log",
    )
    plain, [found] = (
        by_models(program, tmp_path / "1", POSIX).models,
        by_models(replace(program, logs=("l*g",)), tmp_path / "2", POSIX).models,
    )
    assert "these states leave out 2 calls on its logs: l*g" in found.notes
    assert allowed(found).operations == allowed(plain[0]).operations - 2 and allowed(found).is_all
    assert checks(found).trees < checks(plain[0]).trees


def test_calls_are_on_the_files_that_the_kernel_means(tmp_path: Path) -> None:
    """What was read moves the place of a write on; a child has what its parent had open; names may be links."""
    calls = """
import os
fd = os.open('f', os.O_RDWR)
os.read(fd, 4)
os.write(fd, b'DATA')
child = os.fork()
if not child:
    os.read(fd, 2)
    os.write(fd, b'xy')
    os.fsync(fd)
    os._exit(0)
os.close(fd)
other = os.open('g', os.O_RDWR)
os.write(other, b'G')
os.waitpid(child, 0)
os.chdir('l')
os.chmod('s', 0o600)
os.truncate('s', 3)
os.unlink('../f')
"""
    setup = "printf HEADxxxxyyyyzzzz > f; echo g > g; mkdir d; ln -s d l; ln -s t d/s; echo text > d/t"
    program = scripts(f'python3 -c "{calls}"; echo log > /tmp/elsewhere; echo saved', 'test -e "$1/l"', setup)
    answers = by_models(program, tmp_path, POSIX)
    [found] = answers.models
    assert found.answer.reason is None and allowed(found).is_all
    assert "these states leave out a call on files elsewhere: /tmp/elsewhere" in found.notes
    steps = [(step.verb, step.path, step.more) for step in answers.protocols[0].steps if not step.told]
    assert sorted(steps) == [
        ("chmod", "/d/t", ""),
        ("fsync", "/f", ""),
        ("overwrite", "/f", "2 bytes at 10"),
        ("overwrite", "/f", "4 bytes at 4"),
        ("overwrite", "/g", "1 bytes at 0"),
        ("truncate", "/d/t", "to 3 bytes"),
        ("unlink", "/f", ""),
    ]


def test_what_no_call_tells_makes_the_answer_of_a_model_unknown(tmp_path: Path) -> None:
    """A child and its parent have one mapping: which of the two has stored cannot be told."""
    store = """
import mmap, os
g = open('g', 'r+b')
m = mmap.mmap(g.fileno(), 0)
child = os.fork() == 0
for n in range(9):
    m[child] = 65 + n
    open('f').close()
"""
    program = scripts(f'python3 -c "{store}"', setup="touch f; echo text > g")
    [found] = by_models(program, tmp_path, POSIX).models
    assert (found.answer.verdict, found.answer.reason) == (Verdict.UNKNOWN, snapshot("not traced: mmap of /g"))


def test_a_built_tree_has_all_that_a_checker_can_see(tmp_path: Path) -> None:
    """Links of both kinds, a fifo, modes, owners; and the checker of one state sees nothing of another one."""
    check = (
        LIBRARY
        + """
[ "$(stat -c '%a %u' .)" = "750 7" ] || corrupt "the root is $(stat -c '%a %u' .)"
[ "$(stat -c '%a %u %g %h' a)" = "640 1 2 2" ] || corrupt "a is $(stat -c '%a %u %g %h' a)"
[ a -ef d/b ] && [ "$(readlink l)" = a ] && [ -p p ] || corrupt "a link or the fifo is not there"
[ ! -e seen ] || corrupt "another checker was here"
touch seen
told done && [ ! -e f ] && lost "f is not there"
exit 0
"""
    )
    setup = "echo text > a; chmod 640 a; chown 1:2 a; mkdir d; ln a d/b; ln -s a l; mkfifo p; chmod 750 .; chown 7 ."
    [found] = by_models(scripts("touch f; sync .; echo done", check, setup), tmp_path, POSIX).models
    answer = found.answer
    assert (answer.verdict, answer.reason, allowed(found).is_all) == (Verdict.HOLDS, None, True)
    assert checks(found).runs > checks(found).trees > 1
    assert line_with(found.notes, "1:2") == snapshot(
        "the checker ran in guests: the sandbox was lost: /a of 1:2 cannot be made: Invalid argument"
    ), "a sandbox has one user"
