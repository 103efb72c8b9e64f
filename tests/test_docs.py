"""The documentation against the code: links, commands, tables, and the examples."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import inspect
import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import msgspec
import pytest
from inline_snapshot import snapshot

import bob
import bob.answer.document
import bob.answer.result
import bob.catalogue.probe_files
import bob.catalogue.request
import bob.claim.expectation.evaluate
import bob.claim.expectation.language
import bob.claim.property.declaration
import bob.report.comparison.document
import bob.run.matrix
import bob.run.prober
import bob.store.matrix_directory
import bob.store.run_documents
import bob.witness.document
import formats_page
from bob.agent.inside import look, recorder, state_session
from bob.apm.clauses import SYNCS, UNITS, WHATS, every_clause
from bob.claim.expectation.language import FORMS
from bob.claim.kinds import KINDS
from bob.claim.property.rules import Later, Rule
from bob.claim.property.subjects import Effect, Span
from bob.claim.property.vocabulary import Call, What
from bob.cli.ending import pointed
from bob.crash.search import ENUMERABLE_STATES
from bob.errors import Exit, PointedError
from bob.observe.ledger import AUDIT_EVERY
from bob.report.comparison.compare import Kind
from bob.report.published import Direction, Reason
from bob.resources import shipped
from bob.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, MIB, file_system, file_systems, layers, stack
from bob.subject.layer import LEAST_WORDS
from bob.workload.kinds import ChangeKind, Relation
from bob.workload.language import GRAMMAR, parse
from bob.workload.operations import At, How, Workload
from bob.workload.simulation import simulate
from claim.written import write as write_expectation
from wording import sentence_with

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "reports").glob("*.md")])
TEXTS = [*PAGES, DOCS / "pipeline.svg", ROOT / "Vagrantfile"]

HOSTS = {
    "distributed.dask.org",
    "docs.kernel.org",
    "ftp.de.debian.org",
    "jobqueue.dask.org",
    "keepachangelog.com",
    "kubernetes.dask.org",
    "libvirt.org",
    "semver.org",
    "www.usenix.org",
    "www.w3.org",
}
"""Where links may go: public pages. No mirror, no registry, no machine of ours."""


def text(page: str) -> str:
    return (ROOT / page).read_text()


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_code(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)


def between(page: str, marker: str) -> str:
    """What stands between ``<!-- marker -->`` and ``<!-- /marker -->``, each of which is there once."""
    [found] = re.findall(rf"<!-- {marker} -->\n(.*?)<!-- /{marker} -->", page, flags=re.S)
    return found


def code(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.S | re.M)


def words(page: str) -> set[str]:
    """Everything in the page that stands as ``code`` in a line, word by word."""
    return {word for span in re.findall(r"`([^`\n]+)`", without_code(page)) for word in re.findall(r"[\w.-]+", span)}


# Python


def test_help_explains_each_argument_of_python() -> None:
    """docs/results.md sends its readers there."""
    for function in (bob.probe, bob.resume, bob.try_, bob.app):
        told = re.findall(r"^:param (\w+): \S", inspect.getdoc(function) or "", flags=re.M)
        assert told == list(inspect.signature(function).parameters)


def test_the_notebook_was_run_from_top_to_bottom() -> None:
    notebook = json.loads(text("docs/notebook.ipynb"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells)
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "execute_result"}
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}


def test_pages_by_hand_are_no_longer_than_a_person_reads() -> None:
    """Each word counts, also in tables and in quoted output, but for what a program writes."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]
    texts = {page.name: page.read_text() for page in pages if page.name != "cli.md"}
    texts["formats.md"] = formats_page.by_hand(texts["formats.md"])
    counted = {name: len(body.split()) for name, body in texts.items()}
    assert counted["formats.md"] > 2000
    assert sum(counted.values()) <= 45_000, f"cut what stands twice, or link: {counted}"


# Links


def targets(page: Path) -> Iterator[str]:
    body = without_code(page.read_text())
    yield from re.findall(r"\]\(([^)\s]+)\)", body)
    yield from re.findall(r"^\[[^\]]+\]: (\S+)$", body, flags=re.M)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for target in targets(page):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if linked == DOCS / "cli.md" and not linked.exists():
            continue  # written by a program: python -m bob.cli.help_page
        assert linked.exists(), f"{target} in {name_of(page)}"
        assert not anchor or anchor in anchors(linked), f"{target} in {name_of(page)}"


def test_every_reference_link_is_defined_and_used() -> None:
    for page in PAGES:
        body = without_code(page.read_text())
        defined = set(re.findall(r"^\[([^\]]+)\]: ", body, flags=re.M))
        used = set(re.findall(r"\]\[([^\]]+)\]", body)) | {word for word in defined if f"[{word}] " in body}
        assert used == defined, name_of(page)


def test_every_page_is_in_the_readme() -> None:
    for page in DOCS.glob("*.md"):
        assert f"(docs/{page.name})" in text("README.md")


def test_pages_that_the_code_speaks_of_exist() -> None:
    for source in [*(ROOT / "bob").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for page in re.findall(r"docs/([a-z-]+\.md)", source.read_text()):
            assert (DOCS / page).exists() or page == "cli.md", f"docs/{page} in {name_of(source)}"


# What must not be in public texts


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_no_machine_of_ours(path: Path) -> None:
    body = path.read_text().replace("/home/vagrant/", "~/")  # a box's own user
    body = body.replace("10.9.0.12", "")  # the address of a cluster's node, within a guest
    assert not re.findall(r"(?<![\w.])/(?:work|home|root|Users|srv|mnt|private)/\w*", body)
    for url in re.findall(r"https?://[^\s)\"'<>`]+", body):
        assert urlsplit(url).hostname in HOSTS, url
    assert not re.search(r"\b(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b", body)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_lines_are_plain(path: Path) -> None:
    body = path.read_text()
    assert body.endswith("\n") and not body.endswith("\n\n")
    assert not re.search(r"[ \t]+$", body, flags=re.M)
    assert not re.search(r"[\U0001F000-\U0001FFFF\u2600-\u27BF]", body), "emoji"


# Commands


def commands() -> set[tuple[str, ...]]:
    """The name of every command of the program, word by word."""
    try:
        main = importlib.import_module("bob.cli.main")
    except ModuleNotFoundError as error:
        if error.name != "bob.cli.main":
            raise
        pytest.skip("there is no bob.cli.main yet")
    import click

    found: set[tuple[str, ...]] = set()

    def collect(group: click.Group, above: tuple[str, ...]) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found.add((*above, name))
            if isinstance(command, click.Group):
                collect(command, (*above, name))

    collect(main.cli, ())
    return found


def commands_in(body: str) -> Iterator[tuple[str, ...]]:
    """Every ``bob VERB`` and ``./run VERB`` as code, in a line or in a block of commands."""
    lines = re.findall(r"`([^`\n]+)`", without_code(body))
    lines += [line for block in code(body, "sh") for line in block.splitlines()]
    for line in lines:
        if found := re.match(r"(?:bob|\./run) ([a-z]+)(?: ([a-z][a-z-]*))?", line.strip()):
            yield tuple(word for word in found.groups() if word)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_exists(page: Path) -> None:
    known = commands() | {("test",), ("longtest",), ("words",), ("release",)}
    groups = {name[0] for name in known if len(name) == 2}
    for command in commands_in(page.read_text()):
        wanted = command if command[0] in groups and len(command) == 2 else command[:1]
        assert wanted in known, f"bob {' '.join(command)} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_option_exists(page: Path) -> None:
    if page.name == "cli.md":
        pytest.skip("made from the options")
    commands()
    import click

    main = importlib.import_module("bob.cli.main")
    known = {"--help", "--version", "--trial"}  # the last is of ./run release

    def collect(command: click.Command) -> None:
        known.update(option for parameter in command.params for option in parameter.opts)
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                collect(found)

    collect(main.cli)
    for span in re.findall(r"`([^`\n]+)`", without_code(page.read_text())):
        if span.startswith(("--", "bob ", "./run ")):
            for option in re.findall(r"(?<!\S)--[a-z-]+", span):
                assert option in known, f"{option} in {name_of(page)}"


def command_lines(body: str) -> Iterator[str]:
    """What follows ``bob`` or ``./run`` in commands: lines of blocks (also of those in lists), and code in a line."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", body, flags=re.S | re.M)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`([^`\n]+)`", without_code(body))
    for line in lines:
        if found := re.match(r"""(?:if )?(?:bob|\./run) ([a-z](?:'[^']*'|"[^"]*"|[^|;&>#'"])*)""", line.strip()):
            yield found[1]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "cli.md"], ids=name_of)
def test_every_command_line_is_understood(page: Path) -> None:
    """Each option belongs to its command, and has a value where it takes one."""
    import click

    from bob.cli.apm import WithSigns
    from bob.cli.main import cli

    for line in command_lines(page.read_text()):
        words = shlex.split(line)
        if words[0] in ("test", "longtest", "words", "bench", "release"):  # ./run's own
            continue
        command: click.Command = cli
        context = click.Context(cli, info_name="bob", **cli.context_settings)
        while True:
            try:
                words = command.shielded(words) if isinstance(command, WithSigns) else words
                _options, words, _order = command.make_parser(context).parse_args(words)
            except click.BadOptionUsage:  # no such option is another error
                assert line.split()[-1].startswith("--"), f"{line}: only a text may name an option without its value"
                break
            if not isinstance(command, click.Group) or not words:
                break
            inner = command.get_command(context, words[0])
            assert inner is not None, line
            command, words, context = inner, words[1:], click.Context(inner, parent=context)


def test_a_command_line_that_is_wrong_would_be_seen() -> None:
    block = "./run probe --fs ext4 \\\n  --budget 5 | less\n./run try 'sync; sync'"
    page = f"```sh\n{block}\n```\nand `bob replay --keep DIR WITNESS`"
    assert list(command_lines(page)) == [
        "probe --fs ext4    --budget 5 ",
        "try 'sync; sync'",
        "replay --keep DIR WITNESS",
    ]


def test_every_exit_code_is_in_one_table() -> None:
    [table] = re.findall(r"^## Exit codes$(.*?)^## ", text("docs/results.md"), flags=re.M | re.S)
    rows = re.findall(r"^\| (\d+) \| .* \|$", table, flags=re.M)
    assert list(map(int, rows)) == sorted(Exit)
    others = [page for page in PAGES if re.search(r"^\| 130 \|", page.read_text(), flags=re.M)]
    assert [name_of(page) for page in others] == ["docs/results.md"]


# docs/extend.md


def operations_table() -> str:
    rows = ["| operation | written | what it does |", "|---|---|---|"]
    for verb, form in GRAMMAR.items():
        usage = form.usage.replace("|", r"\|")
        rows.append(f"| `{verb}` | `{usage}` | {form.does} |")
    return "\n".join(rows) + "\n"


def test_the_operations_are_those_of_the_grammar() -> None:
    assert between(text("docs/extend.md"), "operations") == operations_table()


def test_every_key_of_a_probe_file_is_described() -> None:
    keys = keys_written(bob.catalogue.probe_files, bob.claim.property.declaration)
    assert {"name", "workloads", "judge", "finish", "then_renamed"} <= keys
    assert keys <= words(text("docs/extend.md"))


def test_every_value_of_a_probe_file_is_described() -> None:
    described = words(text("docs/extend.md"))
    for values in (Rule, Later, Effect, Span, ChangeKind, Relation, Call, At, set(How) - {How.PLAIN}):
        assert {value.value for value in values} <= described


def test_every_word_of_a_clause_of_durability_is_described() -> None:
    described = words(text("docs/models.md"))
    assert {word.value for word in (*SYNCS, Call.RETURNED, *WHATS, *UNITS)} <= described
    assert {what.value for what in What} <= described | words(text("docs/extend.md"))


def test_every_tree_is_described() -> None:
    rows = re.findall(r"^\| `(\w+)` \| directories", text("docs/extend.md"), flags=re.M)
    assert set(rows) == set(tomllib.loads((shipped("probes") / bob.catalogue.probe_files.TREES).read_text()))


def test_the_example_is_a_probe(tmp_path: Path) -> None:
    [example] = code(between(text("docs/extend.md"), "probe"), "toml")
    path = tmp_path / "append-mkdir.toml"
    path.write_text(example)
    probe = bob.catalogue.probe_files.load(path)
    assert probe.property.name == path.stem
    assert probe.row == 1000
    assert len(probe.workloads) == 8


# docs/extend.md


def test_the_example_is_a_file_system(tmp_path: Path) -> None:
    [example] = code(between(text("docs/extend.md"), "minix"), "toml")
    path = tmp_path / "minix.toml"
    path.write_text(example)
    made = file_system(str(path))
    assert (made.name, made.driver, made.mkfs) == ("minix", "minix", ("mkfs.minix", "-3", "DEVICE"))
    assert "minix" not in file_systems()


def test_the_example_is_a_layer(tmp_path: Path) -> None:
    [example] = code(between(text("docs/extend.md"), "layer"), "toml")
    path = tmp_path / "three.toml"
    path.write_text(example)
    disks, [made] = stack(str(path), 32 * MIB)
    assert (len(disks), made.name, made.start[0][:2]) == (3, "three", ("dm", "TOP"))
    assert "three" not in layers()


def test_every_command_of_a_layer_is_described() -> None:
    page = text("docs/extend.md")
    assert all(f"| `{verb} " in page for verb in LEAST_WORDS)


def test_every_key_of_a_file_system_is_described() -> None:
    keys = {name for fs in (ROOT / "bob/subject/file-systems").glob("*.toml") for name in tomllib.loads(fs.read_text())}
    assert {"mkfs", "quiet", "forgets"} <= keys
    assert keys <= words(text("docs/formats.md"))


# docs/try.md


def cells_of(marker: str) -> list[list[str]]:
    """The rows of a table of docs/try.md, each with its cells, without its head."""
    rows = between(text("docs/try.md"), marker).splitlines()[2:]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]


def test_every_expectation_in_the_tables_reads_back() -> None:
    spans = [span for marker in ("tests", "joined") for row in cells_of(marker) for span in row[0].split("`")[1::2]]
    assert len(spans) > 15
    assert {span.split()[0] for span in spans} >= {*FORMS, "not"}
    for span in spans:
        assert bob.claim.expectation.language.parse(
            write_expectation(bob.claim.expectation.language.parse(span).test)
        ).text


def test_what_the_page_says_of_precedence() -> None:
    [(one, other)] = re.findall(r"So\n`([^`]+)` is `([^`]+)`", text("docs/try.md"))
    assert bob.claim.expectation.language.parse(one).test == bob.claim.expectation.language.parse(other).test


def test_the_questions_can_be_asked() -> None:
    done: tuple[str, ...] = ()
    for _question, performed, asked in cells_of("questions"):
        done = tuple(performed.split("`")[1::2][:2]) or done
        setup, operations = ("", *done)[-2:]
        history = simulate(Workload("try", parse(setup), parse(operations)))[0]
        bob.claim.expectation.evaluate.check(bob.claim.expectation.language.parse(asked.strip("`")), history)


def test_the_mistake_is_pointed_at_as_the_page_says() -> None:
    [shown] = [block for block in code(text("docs/try.md"), "text") if block.startswith("bob: ")]
    said, excerpt, mark, hint = shown.splitlines()
    with pytest.raises(PointedError) as caught:
        bob.claim.expectation.language.parse(excerpt.strip())
    assert said == f"bob: --expect, {caught.value.place}: {caught.value.message}"
    assert (excerpt, mark) == pointed(caught.value)
    assert hint == f"hint: {caught.value.hint}"


# docs/formats.md


def dataclasses_of(module: ModuleType) -> Iterator[type]:
    for _name, found in inspect.getmembers(module, dataclasses.is_dataclass):
        if found.__module__ == module.__name__:
            yield found


def test_every_field_of_a_result_is_described() -> None:
    described = words(text("docs/formats.md"))
    for found in (
        *dataclasses_of(bob.answer.answer),
        *dataclasses_of(bob.answer.result),
        *dataclasses_of(bob.answer.document),
    ):
        for field in dataclasses.fields(found):
            assert field.name in described, f"{found.__name__}.{field.name}"


def keys_written(*modules: ModuleType) -> set[str]:
    """The keys of every dictionary that stands in the source of ``modules``, and the fields of their documents."""
    nodes = [node for module in modules for node in ast.walk(ast.parse(inspect.getsource(module)))]
    keys = [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)]
    documents = [found for module in modules for _name, found in inspect.getmembers(module, inspect.isclass)]
    told = [field for found in documents if issubclass(found, msgspec.Struct) for field in found.__struct_fields__]
    return {*told, *(key.value for key in keys if isinstance(key.value, str))}


def test_every_key_that_is_written_is_described() -> None:
    claims = [sys.modules[reader.__module__] for reader in KINDS.values()]
    keys = keys_written(bob.store.run_documents, bob.witness.document, bob.story.timeline, *claims)
    assert {"outcomes", "coverage", "timeline", "inodes_after", "schema", "trouble", "question"} <= keys
    assert keys <= words(text("docs/formats.md"))


def test_every_key_and_kind_of_a_comparison_is_described() -> None:
    keys = keys_written(bob.report.comparison.document)
    assert {"only_a", "because", "replay"} <= keys
    assert keys <= words(text("docs/formats.md"))
    kinds = re.findall(r"^\| ((?:`[a-z ]+`(?:, )?)+) \| ", text("docs/formats.md"), flags=re.M)
    assert set(Kind) <= {kind for cell in kinds for kind in re.findall(r"`([a-z ]+)`", cell)}


def test_every_key_of_a_reason_is_described() -> None:
    described = text("docs/formats.md").split("### Known reasons")[1]
    assert set(Reason.__struct_fields__) <= words(described)
    assert all(f"`{direction}`" in described for direction in Direction)


def test_every_key_of_run_json_is_described() -> None:
    keys = keys_written(bob.run.prober, bob.catalogue.request, bob.run.matrix, bob.store.matrix_directory) | {
        "environment",
        "finished",
    }
    assert {"id", "request", "seed", "columns", "workloads"} <= keys
    assert keys <= words(text("docs/formats.md"))


def test_every_key_of_an_outcome_is_described() -> None:
    keys = keys_written(state_session, look)
    assert {"kind", "repaired", "content"} <= keys
    assert keys - {"block/block_bio_queue"} <= words(text("docs/formats.md"))


# docs/how-it-works.md, README.md


def test_the_worked_example_prints_what_it_says() -> None:
    example = between(text("docs/how-it-works.md"), "example")
    [program], [expected] = code(example, "python"), code(example, "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/how-it-works.md", "exec"), {})
    assert printed.getvalue() == expected


def test_the_arithmetic_of_the_worked_examples() -> None:
    page = re.sub(r"\s+", " ", text("docs/how-it-works.md"))
    assert "2 + 2 + 2 = 6" in page
    assert (2**16 - 2**8) + (2**16 - 2**8) + 2**8 == 130_816 and "130,816" in page
    assert (2**7 - 1) + (2 - 1) + 1 == 129 and "129 states" in page
    assert (2**56 - 1) + (2**8 - 1) + 1 == 72_057_594_037_928_191 and "72,057,594,037,928,191" in page


def test_the_numbers_that_the_pages_name() -> None:
    pages = {page.name: re.sub(r"\s+", " ", page.read_text()) for page in PAGES}
    probes = bob.catalogue.probe_files.shipped_probes()
    recordings = bob.catalogue.workloads.distinct(workload for probe in probes for workload in probe.workloads)
    ext4 = file_systems()["ext4"]
    assert f"| `table1` | {len(probes)} | {len(recordings)} |" in pages["extend.md"]
    assert f"on a device of {ext4.device // MIB} MiB" in pages["limits.md"]
    assert f"({ext4.quiet:g} s for ext4)" in pages["how-it-works.md"]
    assert sentence_with(pages["how-it-works.md"], recorder.ALIGNMENT_SECONDS, "multiple") == snapshot(
        "Wait until the guest's monotonic clock is at a multiple of 20 s, and set the wall clock to a fixed date."
    )
    assert sentence_with(pages["how-it-works.md"], DEFAULT_BUDGET, "default", "mounts") == snapshot(
        "### Which states are tried A *budget* (`--budget`, by default about 100 mounts per workload) limits the search."
    )
    assert f"at most {ENUMERABLE_STATES:,}" in pages["how-it-works.md"]
    assert f"(of all {len(every_clause())}, those tried or promised)" in pages["formats.md"]
    assert sentence_with(pages["how-it-works.md"], AUDIT_EVERY, "After") == snapshot(
        "After every 100 mounts, and at the end, the scratch image is compared with its base *byte for byte*:"
    )
    assert f"by default one in {round(1 / DEFAULT_AUDIT)} of" in pages["how-it-works.md"]


def test_the_readme_has_one_table() -> None:
    assert len(code(between(text("README.md"), "table"), "text")) == 1
