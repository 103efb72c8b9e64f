"""A table of programs × file systems, and below it what each × rests on, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bob import counts
from bob.program.answer import Consequence
from bob.report.counts import compact
from bob.report.escape import markdown

Answer = Mapping[str, Any]
"""A configuration of a result (``bob.app/1``)."""
MARKS = {"safe": "safe", "vulnerable": "×", "unknown": "?"}
MOST_RELIED_ON = 3


def page(documents: Sequence[Mapping[str, Any]], configurations: Sequence[str], folder: str) -> str:
    """The page about ``documents``, results of one program each, with these ``configurations`` as columns; witnesses
    are in ``folder``, where the commands look for them."""
    answers = {
        (document["program"]["name"], one["name"]): one for document in documents for one in document["configurations"]
    }
    programs = {document["program"]["name"]: document["program"]["about"] for document in documents}
    lines = [
        *_head(documents),
        "| program | " + " | ".join(configurations) + " |",
        "|---" * (len(configurations) + 1) + "|",
    ]
    for name in programs:
        cells = [_cell(answers.get((name, configuration))) for configuration in configurations]
        lines.append(f"| [{name}](#{name}) | " + " | ".join(cells) + " |")
    for name, about in programs.items():
        lines += ["", f"## {name}", "", f"{markdown(about)}.", ""]
        for configuration in configurations:
            if (answer := answers.get((name, configuration))) is not None:
                lines += _told(name, configuration, answer, folder)
    return "\n".join(lines) + "\n"


def _head(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    kernels = dict.fromkeys(document["environment"]["kernel"] for document in documents)
    return [
        f"# Programs after a crash, on Linux {', '.join(kernels)}",
        "",
        "Each cell is the answer of `bob app run PROGRAM --pace undisturbed`. *safe*: the checker accepts every",
        "crash state that was explored; it is no proof. ×: it refuses some, with the loss in the cell. Below the",
        "table stands what the program relies on in each × ([how](../../../docs/apps.md#what-the-program-relies-on)).",
        "",
    ]


def _cell(answer: Answer | None) -> str:
    if answer is None:
        return "–"
    if answer["safety"] != "vulnerable":
        return MARKS[answer["safety"]]
    kinds = dict.fromkeys(Consequence(one["consequence"]).words for one in answer["vulnerabilities"])
    return f"× {', '.join(kinds)}"


def _told(name: str, configuration: str, answer: Answer, folder: str) -> list[str]:
    explored = f"{_count(answer['explored'])} of {_count(answer['legal_sectors'])} crash states"
    seen = f"{explored}, {answer['trees']} outcomes, {answer['checks']} checks"
    if answer["safety"] != "vulnerable":
        reason = f": {markdown(answer['reason'])}" if answer["reason"] else " as far as explored"
        return [f"- **{configuration}**: {MARKS[answer['safety']]}{reason} ({seen})"]
    lines = [f"- **{configuration}**: ×  ({seen})"]
    for one in answer["vulnerabilities"]:
        said = f"{markdown(one['evidence'])}, in {_count(one['states'])} crash states"
        lines.append(f"  - {said}")
        for relied in one["relied_on"][:MOST_RELIED_ON]:
            lines.append(f"    - {markdown(relied['sentence'])}")
        if one["witness"]:
            lines.append(f"    - `bob replay {folder}/{one['witness']}`")
    return lines


def _count(value: Any) -> str:
    return compact(counts.read(value))
