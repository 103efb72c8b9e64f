"""Draw a lattice of models as an SVG, with Graphviz. A model is a set of clauses. A *clause* is one promise about crash
states. From each model a line goes up to the next stronger models, which promise all that it promises."""

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bob.apm.clauses import Clause, with_weaker
from bob.apm.model import Model, with_distinct_names
from bob.errors import MissingProgramError
from bob.report.escape import clean
from bob.text import plural

APART = "neither weaker nor stronger than another"
ROW = 5  # boxes in a row, for boxes without lines
STYLE = """
.bob-lattice { color-scheme: light dark; color: var(--ink, CanvasText); }
.bob-lattice text { fill: currentColor; }
.bob-lattice .node path { fill: var(--paper, Canvas); stroke: currentColor; stroke-opacity: .55; }
.bob-lattice .cluster polygon { stroke: none; }
.bob-lattice .edge path { stroke: #0072B2; stroke-width: 1.6; stroke-opacity: .85; }
@media (prefers-color-scheme: dark) { .bob-lattice .edge path { stroke: #56b4e9; } }
"""


@dataclass(frozen=True, slots=True)
class Box:
    names: tuple[str, ...]
    promised: frozenset[Clause]


def boxes(models: Iterable[Model]) -> tuple[Box, ...]:
    """Return boxes for a picture of the models, the weakest first. Models that promise the same clauses share a box."""
    names: dict[frozenset[Clause], list[str]] = {}
    for model in with_distinct_names(tuple(models)):
        names.setdefault(model.promised, []).append(model.name)
    found = (Box(tuple(sorted(together)), promised) for promised, together in names.items())
    return tuple(sorted(found, key=lambda box: (len(box.promised), box.names)))


def stronger(found: Sequence[Box]) -> dict[int, tuple[int, ...]]:
    """Return, for the index of each box, the indexes of the next stronger boxes. A box is stronger than another if it
    promises more, and it is the next if no third box lies between the two. ``found`` has all boxes."""
    every = [with_weaker(box.promised) for box in found]
    above = {at: [other for other, one in enumerate(every) if promised < one] for at, promised in enumerate(every)}
    return {
        at: tuple(other for other in others if not any(other in above[one] for one in others))
        for at, others in above.items()
    }


def lattice(models: Sequence[Model]) -> str:
    """Return the picture as an ``<svg>`` element. Raises MissingProgramError if Graphviz is not installed."""
    found = boxes(models)
    ties = stronger(found)
    try:
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot(found, ties), capture_output=True, check=True, text=True)
    except FileNotFoundError:
        hint = "install it: apt-get install graphviz"
        raise MissingProgramError("bob needs Graphviz to draw models, and dot is missing", hint=hint) from None
    picture = re.sub(r"<!--.*?-->\n|<title>.*?</title>\n", "", drawn.stdout[drawn.stdout.index("<svg") :], flags=re.S)
    head = f'<svg class="bob-lattice" role="img" aria-label="{escape(clean(picture_in_words(found, ties)))}"'
    return picture.replace("<svg", head, 1).replace(">", f">\n<style>{STYLE}</style>", 1)


def dot(found: Sequence[Box], ties: Mapping[int, Sequence[int]]) -> str:
    """Return a picture of the boxes ``found`` in Graphviz's language. ``ties`` is the result of :func:`stronger`: a
    line leads from each box to each of its next stronger boxes. Boxes without a line stand below the others, in
    rows."""
    lines = [f"{at} [label=<{_label(box)}>];" for at, box in enumerate(found)]
    lines += [f"{at} -> {other};" for at, others in ties.items() for other in others]
    tied = {at for at, others in ties.items() if others} | {other for others in ties.values() for other in others}
    apart = [at for at in range(len(found)) if at not in tied]
    weakest = [at for at in tied if not any(at in others for others in ties.values())]
    if apart:
        lines.append(f'subgraph cluster_apart {{ label="{APART}"; {"; ".join(map(str, apart))}; }}')
        below = [*zip(apart[ROW:], apart, strict=False), *((apart[0], at) for at in weakest)]
        lines += [f"{low} -> {high} [style=invis];" for low, high in below]
    return "\n".join(
        [
            "digraph { rankdir=BT; bgcolor=transparent; fontname=monospace; fontsize=12; edge [arrowhead=none];",
            "node [shape=box, style=rounded, fontname=monospace, fontsize=12];",
            *lines,
            "}\n",
        ]
    )


def picture_in_words(found: Sequence[Box], ties: Mapping[int, Sequence[int]]) -> str:
    said = [
        f"{' and '.join(found[at].names)} weaker than {', '.join('/'.join(found[other].names) for other in others)}"
        for at, others in ties.items()
        if others
    ]
    return f"models, from weaker to stronger: {'; '.join(said) or 'none is weaker than another'}"


def _label(box: Box) -> str:
    names = (f"<b>{escape(clean(name))}</b>" for name in box.names)
    return "<br/>".join([*names, plural(len(box.promised), "clause")])
