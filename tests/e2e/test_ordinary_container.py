"""The two CI examples of docs/results.md, from `git clone` to the JUnit file, with the rights of an ordinary container:
./run installs bob, bob builds its image, and guests work. Debian's packages are here already."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bob.errors import Exit

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "tests/ordinary_container.py"
REFERENCE = "reports/reference/osdi14-linux-6.1"
PAGE = (ROOT / "docs/results.md").read_text()

pytestmark = [pytest.mark.vm, pytest.mark.long]


@pytest.fixture
def project() -> Iterator[Path]:
    """A user's project, which anyone may enter and change, with the reference that the examples name."""
    folder = Path(tempfile.mkdtemp(prefix="bob-ci-", dir="/var/tmp"))
    try:
        folder.chmod(0o777)
        (folder / "reference").mkdir()
        (folder / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")  # the clone's source belongs to another user
        document = subprocess.run(
            [sys.executable, "-m", "bob", "show", REFERENCE, "--format", "json"],
            capture_output=True,
            check=True,
            cwd=ROOT,
        )
        (folder / "reference/ext4.json").write_bytes(document.stdout)
        yield folder
    finally:
        shutil.rmtree(folder)


def done(project: Path, user: int | None, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a job's script as root with Docker's capabilities, or as ``user`` with none."""
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.endswith("_proxy")},
        "PATH": os.environ["PATH"].partition(".venv/bin:")[2] or os.environ["PATH"],
        "HOME": str(project),
        "BOB_NO_PACKAGES": "1",
        "BOB_REPOSITORY": f"file://{ROOT}",
        **variables,
    }
    rights = [] if user is None else ["--user", str(user)]
    words = [sys.executable, str(CONTAINER), *rights, "bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, timeout=3000)


def check_report(project: Path, report: str, run: str) -> None:
    """All verdicts are those of the reference, and no case failed for want of an answer."""
    cases = ElementTree.parse(project / report).getroot().findall(".//testcase")
    assert len(cases) == 14, "the rows of Table 1"
    assert not [
        case.get("name") for case in cases if case.find("error") is not None or case.find("failure") is not None
    ]
    assert (project / run / "result.json").is_file()


def test_gitlab_in_a_container_of_docker(project: Path) -> None:
    [example] = re.findall(r"<!-- gitlab -->\n```yaml\n(.*?)```", PAGE, flags=re.S)
    before = re.findall(r"^    - (git clone .*)$", example, flags=re.M)
    [script] = re.findall(r"^  script:\n    - (.*)\n", example, flags=re.M)
    [cache] = re.findall(r"^    XDG_CACHE_HOME: \$CI_PROJECT_DIR/(.*)$", example, flags=re.M)
    ended = done(project, None, "\n".join([*before, script]), XDG_CACHE_HOME=str(project / cache))
    assert ended.returncode == Exit.DONE, ended.stderr[-4000:]
    check_report(project, "report.xml", "bob-run")
    [folder] = re.findall(r"^    paths: \[(\.cache.*)\]$", example, flags=re.M)
    assert list((project / folder).glob("*/image.json")), "what the next job takes from the cache"


def test_github_without_any_capability(project: Path) -> None:
    [arguments] = re.findall(r"^          arguments: (.*)$", PAGE, flags=re.M)
    action = (ROOT / "docs/ci/action.yml").read_text()
    [named, asked, _shown] = re.findall(r"^      run: \|\n((?:        .*\n)+)", action, flags=re.M)
    ended = done(
        project,
        1000,
        f'git clone --quiet --depth 1 "$BOB_REPOSITORY" action\n(\n{named})\n(\n{asked})',
        GITHUB_OUTPUT=str(project / "output"),
        GITHUB_ACTION_PATH=str(project / "action/docs/ci"),
        BOB_ARGUMENTS=arguments,
        BOB_OUT="bob-run",
        BOB_JUNIT="bob-report.xml",
    )
    assert ended.returncode == Exit.DONE, ended.stderr[-4000:]
    check_report(project, "bob-report.xml", "bob-run")
    assert (project / "output").read_text().startswith("key=bob-images-")
