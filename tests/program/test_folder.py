"""The folder of a program: what is taken, and what is refused in a line."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from bob.agent.inside import programs
from bob.agent.inside.processes import ScriptBounds
from bob.agent.inside.programs import Script, ScriptExit
from bob.catalogue.request import ProbeRequest, request_from_json, request_to_json
from bob.cli.app import TEMPLATE
from bob.errors import UsageError
from bob.program.folder import load, of_commands, shipped_programs
from bob.program.program import EMPTIED, Pace, Program, ProgramDocument
from bob.run.option_table import Exploration, FileSystemOptions, GuestOptions
from bob.run.requests import program_requests
from bob.schema import decode, encode
from bob.subject import configuration
from wording import text_with


def folder(path: Path, declaration: str = "", *, leave_out: str = "", plain: str = "") -> Path:
    path.mkdir()
    (path / "app.toml").write_text(declaration)
    for name in ("setup", "workload", "check"):
        if name != leave_out:
            (path / name).write_text("#!/bin/sh\n")
            (path / name).chmod(0o644 if name == plain else 0o755)
    return path


def test_a_program_is_its_files_and_what_it_declares(tmp_path: Path) -> None:
    found = load(folder(tmp_path / "mine", 'about = "a line"\ndevice_mib = 32\nseconds = 5\n'))
    assert (found.name, found.about, found.device, found.seconds) == ("mine", "a line", 32 * 1024 * 1024, 5)
    assert found.must_fail == (EMPTIED,)
    assert set(found.scripts) == {"setup", "workload", "check"}
    with tarfile.open(fileobj=io.BytesIO(found.archive)) as archive:
        modes = {entry.name: entry.mode for entry in archive}
    assert modes == {"app.toml": 0o644, "setup": 0o755, "workload": 0o755, "check": 0o755}


def test_the_device_is_as_large_as_the_program_and_the_file_system_need_it(tmp_path: Path) -> None:
    wide, small = load(folder(tmp_path / "wide", "device_mib = 64\n")), load(folder(tmp_path / "any"))

    def sizes(program: Program, *file_systems: str, device: int = 0) -> list[int]:
        options, asked = FileSystemOptions(device=device), Exploration()
        made = program_requests(
            program, file_systems, options, (), asked, "debian-bookworm", GuestOptions(), progress=print
        )
        return [one.configuration.device_bytes // 2**20 for one in made if one.pace is made[0].pace]

    assert sizes(wide, "ext4", "btrfs", "xfs") == [64, 128, 300]
    assert sizes(small, "ext4") == [32]
    assert sizes(wide, "ext4", device=48 * 2**20) == [48]


def test_a_program_is_written_and_read_back(tmp_path: Path) -> None:
    found = load(folder(tmp_path / "mine"))
    again = decode(ProgramDocument, encode(ProgramDocument.of(found))).program
    assert again == found and again.digest == found.digest


def test_another_byte_in_a_script_is_another_program(tmp_path: Path) -> None:
    found = load(folder(tmp_path / "mine"))
    (tmp_path / "mine" / "workload").write_text("#!/bin/sh\ntrue\n")
    assert load(tmp_path / "mine").digest != found.digest


@pytest.mark.parametrize(
    ("declaration", "leave_out", "plain", "said"),
    [
        ("", "workload", "", snapshot("TMP/mine lacks the script workload")),
        ("", "check", "", snapshot("TMP/mine lacks the script check")),
        ("", "", "check", snapshot("TMP/mine/check is not executable")),
        ("", "", "setup", snapshot("TMP/mine/setup is not executable")),
        ("colour = 3", "", "", snapshot("app.toml: unknown key 'colour'")),
        ("must_fail = 3", "", "", snapshot("app.toml: must_fail: expected array, got 3")),
        (
            'must_fail = ["gone"]',
            "",
            "",
            snapshot("app.toml: must_fail: 'gone' is not an executable file in TMP/mine"),
        ),
        ("about = ", "", "", snapshot("app.toml: Invalid value (at end of document)")),
        ("seconds = -1", "", "", snapshot("app.toml: seconds: expected int >= 0, got -1")),
        ("seconds = 0", "", "", snapshot("app.toml: seconds must be more than 0 and at most 3600, not 0")),
        ("seconds = 4000", "", "", snapshot("app.toml: seconds must be more than 0 and at most 3600, not 4000")),
        ('scripts.workload = "true"', "", "", snapshot("TMP/mine has 'workload' twice")),
        ('files.a = ""\nscripts.a = ""', "", "", snapshot("TMP/mine has 'a' twice")),
        ('files."../a" = ""', "", "", snapshot("app.toml: files: '../a' is not a valid path in the program's folder")),
        ('files."/a" = ""', "", "", snapshot("app.toml: files: '/a' is not a valid path in the program's folder")),
        (
            'files."app.toml" = ""',
            "",
            "",
            snapshot("app.toml: files: 'app.toml' is not a valid path in the program's folder"),
        ),
        (
            'files.workload = ""',
            "workload",
            "",
            snapshot("app.toml: files: 'workload' is a script; write it in [scripts]"),
        ),
        ("files.a = 3", "", "", snapshot("app.toml: files[...]: expected str, got int")),
        ('logs = "*.log"', "", "", snapshot("app.toml: logs: expected array, got '*.log'")),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, declaration: str, leave_out: str, plain: str, said: str) -> None:
    made = folder(tmp_path / "mine", declaration, leave_out=leave_out, plain=plain)
    with pytest.raises(UsageError) as refused:
        load(made)
    assert str(refused.value).replace(str(tmp_path), "TMP") == said


def test_logs_and_frames_are_patterns_and_make_another_program(tmp_path: Path) -> None:
    plain = load(folder(tmp_path / "a", "about = ''"))
    found = load(folder(tmp_path / "b", 'logs = ["*.log", "LOG"]\nframes = ["libgit2*"]'))
    assert (found.logs, found.frames) == (("*.log", "LOG"), ("libgit2*",))
    assert [path for path in ("/a.log", "/d/e.log", "/LOG", "/d/LOG", "/log", "/a.logs") if found.is_log(path)] == [
        "/a.log",
        "/d/e.log",
        "/LOG",
    ]
    assert decode(ProgramDocument, encode(ProgramDocument.of(found))).program == found
    assert decode(ProgramDocument, encode(ProgramDocument.of(plain))).program == plain and not plain.is_log("/LOG")
    assert replace(plain, logs=("LOG",)).digest != plain.digest != replace(plain, frames=("LOG",)).digest


def test_a_program_may_be_like_another(tmp_path: Path) -> None:
    folder(tmp_path / "first", 'about = "first"\n')
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "app.toml").write_text('like = "../first"\nabout = "second"\n')
    (tmp_path / "second" / "workload").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "second" / "workload").chmod(0o755)
    found = load(tmp_path / "second")
    files = {file.path: file.data for file in found.files}
    assert (found.name, found.about) == ("second", "second")
    assert files["workload"] == b"#!/bin/sh\ntrue\n" and files["check"] == b"#!/bin/sh\n"
    assert b"second" in files["app.toml"]
    (tmp_path / "second" / "app.toml").write_text('like = "../third"\n')
    with pytest.raises(UsageError) as refused:
        load(tmp_path / "second")
    assert str(refused.value) == snapshot("app.toml: like = '../third' is not a directory")


def test_files_may_be_written_out_in_the_declaration(tmp_path: Path) -> None:
    text = "scripts.workload = '''\n#!/bin/sh\ntrue\n'''\nfiles.'etc/mode' = 'fast'\n"
    found = load(folder(tmp_path / "mine", text, leave_out="workload"))
    files = {file.path: (file.data, file.executable) for file in found.files}
    assert files["workload"] == (b"#!/bin/sh\ntrue\n", True) and files["etc/mode"] == (b"fast", False)
    assert list(files) == sorted(files)
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "app.toml").write_text('like = "../mine"\nfiles."etc/mode" = "slow"\n')
    again = {file.path: file.data for file in load(tmp_path / "second").files}
    assert again["workload"] == files["workload"][0] and again["etc/mode"] == b"slow"


def test_it_is_the_same_program_at_its_usual_pace_and_another_one_at_a_slower_one(tmp_path: Path) -> None:
    program = load(folder(tmp_path / "mine"))
    assert "pace" not in encode(
        ProgramDocument.of(program)
    )  # what was kept of it before there were paces is the same program
    for pace in Pace:
        paced = replace(program, pace=pace)
        assert decode(ProgramDocument, encode(ProgramDocument.of(paced))).program == paced
        assert (paced.digest == program.digest) is (pace is Pace.UNDISTURBED)
        request = ProbeRequest(configuration("ext4"), pace=pace)
        assert request_from_json(request_to_json(request)) == request
    assert [pace.of("ext4") for pace in Pace] == ["ext4", "ext4-slow", "ext4-slower", "ext4-busy"]


@pytest.mark.parametrize(
    ("name", "commits"),
    [("ext4", (Pace.SLOW,)), ("btrfs", (Pace.SLOWER,)), ("xfs", (Pace.SLOWER,)), ("f2fs", (Pace.SLOWER,))],
)
def test_at_one_pace_each_file_system_commits_by_itself_after_each_call(name: str, commits: tuple[Pace, ...]) -> None:
    """btrfs and xfs do every 30 s, f2fs every 60 s. With the 7 s of ext4 alone, nano lost no file on btrfs; with 32 s
    alone, git, which renames a file before its data was written, loses none."""
    commit = configuration(name).fs.commit
    paces = Pace.on(commit)
    assert {Pace.UNDISTURBED, Pace.SLOW, Pace.BUSY} <= set(paces)
    assert tuple(pace for pace in paces if pace.delay(commit) > commit) == commits
    for pace in paces[1:]:
        assert pace.patience(commit) * 10 > 100 * pace.delay(commit), "in 10 s of its own, a hundred calls fit"


@pytest.mark.parametrize(
    ("states", "waits", "code"), [("DD", 3, None), ("S", 1, None), ("DD", 3, 0), ("SRSD", 2, None)]
)
def test_a_script_that_waits_for_a_disk_has_more_time(
    states: str, waits: int, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy host makes virtual time run away while the guest waits for it. Between two reads a script does not."""
    waited = []

    class Process:
        pid = 1

        def wait(self) -> int | None:
            return code

    def ends_within(_pid: int, seconds: float, _is_enough: object = None, outputs: object = ()) -> bool:
        if seconds < 1.0:
            return False
        waited.append(seconds)
        return code is not None and len(waited) == waits

    class Nothing:
        is_full = False

        def all(self) -> bytes:
            return b""

    left = list(states)
    script = Script.__new__(Script)
    script.__dict__.update(
        _process=Process(),
        _others=set(),
        _alone=set(),
        _output=Nothing(),
        _said=Nothing(),
        _outputs=(),
        _kill_all=lambda: None,
        _takes_too_much=str,
        _bounds=ScriptBounds(set()),
    )
    monkeypatch.setattr(programs.processes, "descendants", lambda _pid: [1])
    monkeypatch.setattr(programs.processes, "ends_within", ends_within)
    monkeypatch.setattr(programs.processes, "state_of", lambda _pid: left.pop(0) if left else "S")
    assert script.wait(5.0).code == code
    assert waited == [5.0] * waits


def test_a_setup_may_be_left_out(tmp_path: Path) -> None:
    assert set(load(folder(tmp_path / "mine", leave_out="setup")).scripts) == {"workload", "check"}


def test_commands_make_a_program(tmp_path: Path) -> None:
    script = tmp_path / "w.sh"
    script.write_text("#!/bin/sh\necho\n")
    script.chmod(0o755)
    found = of_commands(str(script), 'test -e "$1/a"')
    files = {file.path: file.data for file in found.files}
    assert files == {"workload": b"#!/bin/sh\necho\n", "check": b'#!/bin/sh\ntest -e "$1/a"\n'}
    assert of_commands("echo " + "x" * 5000, "true").files[0].data.startswith(b"#!/bin/sh\necho x")
    script.chmod(0o644)
    with pytest.raises(UsageError) as refused:
        of_commands(str(script), "true")
    assert str(refused.value).replace(str(tmp_path), "TMP") == snapshot("TMP/w.sh is not executable")


def test_what_is_shipped_can_be_loaded() -> None:
    assert "sqlite-rollback" in shipped_programs()
    for path in shipped_programs().values():
        assert load(path).about


def test_the_page_has_what_is_shipped() -> None:
    page = (Path(__file__).parents[2] / "docs" / "apps.md").read_text()
    for name in shipped_programs():
        assert f"`{name}`" in page


def test_the_template_has_all_that_a_program_needs() -> None:
    assert {path.name for path in TEMPLATE.iterdir()} == {"app.toml", "setup", "workload", "check"}


def test_what_a_child_leaves_behind_is_seen_and_nothing_else_is() -> None:
    """In a process of its own, since this one may have children: none, one that has ended, and a grandchild whose
    parent has ended, which comes to the subreaper."""
    text = """
import ctypes, os, time
from bob.agent.inside.mounts import libc
from bob.agent.inside.processes import descendants, has_children
from bob.agent.inside.programs import PR_SET_CHILD_SUBREAPER
libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
assert not has_children()
child = os.fork()
if not child:
    if not os.fork():
        os.setsid()
        time.sleep(60)
    os._exit(0)
assert has_children()
os.waitpid(child, 0)
[left] = descendants()
assert has_children()
os.kill(left, 9)
os.waitid(os.P_PID, left, os.WEXITED | os.WNOWAIT)
assert has_children(), "a dead one that nobody has waited for"
os.waitpid(left, 0)
assert not has_children()
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


def test_paths_in_what_a_script_says_are_those_of_the_file_system_under_test() -> None:
    said = f"{programs.ROOT}/db/CURRENT: gone\nnothing in {programs.ROOT}, see /var/log/x"
    assert text_with(ScriptExit(11, b"", said.encode()).words, "/db/CURRENT", "/var/log/x") == snapshot("""\
/db/CURRENT: gone
nothing in /, see /var/log/x\
""")
    assert text_with(programs.how_it_ended(ScriptExit(1, b"", said.encode()), 9.0), 1, "/var/log/x") == snapshot(
        "failed (1): nothing in /, see /var/log/x"
    )


def test_temporary_files_of_a_machine_that_is_not_bob_s_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone may run the agent's code by hand, and a given machine is its user's."""
    monkeypatch.setattr(programs, "SCRATCH", (str(tmp_path),))
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    programs.clear_scratch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    monkeypatch.setattr(programs, "owns_machine", False)
    programs.own_machine()
    programs.clear_scratch()
    assert not list(tmp_path.iterdir())
