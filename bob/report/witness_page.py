"""The page of one witness (a recorded crash that breaks a property), for people who know file systems but not bob. The
template ``witness.html.j2`` has the words. The page is self-contained. It offers the witness for download, as a file
next to the page or in the page."""

import base64
import shlex
from pathlib import Path

from markupsafe import Markup

from bob import documents
from bob.report.drawing import NARROW, WIDE, svg
from bob.report.story import LACKS
from bob.report.templating import html
from bob.text import size
from bob.witness import bundle
from bob.witness.document import Witness
from bob.workload.language import GRAMMAR, write_one
from bob.workload.operations import Operation, Workload


def to_html(witness: Witness, path: Path, table: str = "", cell: str = "", home: str = "", download: str = "") -> str:
    """Return the page of ``witness``. Commands on the page name the file ``path``. The page has links; their URLs are
    relative to the page. ``table`` is the URL of the page with the table of verdicts. ``cell`` is the id of the section
    on that page that is about the broken property. ``home`` is the URL of the folder of bob's web site. ``download`` is
    the URL of the witness itself, or a data URL from :func:`in_link`. If such an argument is empty, the page lacks the
    link."""
    work, claim, made, model = witness.work, witness.claim, witness.configuration, witness.model
    setup, last = (work.setup, work.finish.operations) if isinstance(work, Workload) else ((), ())
    calls = [(one.words, LACKS.get(one.there, "")) for one in witness.timeline.calls]
    operations = ((write_one(one), claim.role(number)) for number, one in enumerate(witness.operations, start=1))
    file = shlex.quote(str(path))
    keep = shlex.quote(f"{made.name}-{claim.name}".replace("/", "-"))
    wide, narrow = (
        Markup(svg(witness.timeline, witness.operations, claim.role, witness.evidence, legend=False, columns=columns))
        for columns in (WIDE, NARROW)
    )
    page = html().get_template("witness.html.j2")
    return page.render(
        witness=witness,
        made=made,
        table=table,
        cell=cell,
        home=home,
        device=model.words,
        device_size=size(witness.base.length),
        unit=model.atomic_write_bytes,
        told=witness.sentence,
        steps=[*calls, *operations],
        has_calls=bool(calls),
        setup=[write_one(one) for one in setup],
        finish=[write_one(one) for one in last],
        forms=_forms([*witness.operations, *last]),
        picture=wide,
        narrow=narrow,
        replay=f"bob replay {file}",
        keep=f"bob replay --keep {keep} {file}",
        story=f"bob witness show {file}",
        download=download,
        download_name=f"{made.name}-{claim.name}.json".replace("/", "-").replace(" ", "_"),
    )


def witness_text(path: Path) -> str:
    """Return the text of the witness ``path``. The witness may be a file, or a part of a bundle (a file with many
    witnesses). Raise the errors of :func:`bob.witness.bundle.load`."""
    return documents.sealed(documents.text(bundle.load(path))).decode()


def in_link(text: str) -> str:
    """Return a data URL that contains ``text``, a JSON document."""
    return f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"


def _forms(operations: list[Operation]) -> list[tuple[str, str]]:
    """Return the syntax and the meaning of each kind of operation that occurs in ``operations``."""
    verbs = dict.fromkeys(write_one(one).split(maxsplit=1)[0] for one in operations)
    return [(GRAMMAR[verb].usage, GRAMMAR[verb].does) for verb in verbs]
