"""Escapes for text from outside (kernels, tools, file names) in documents. A :class:`Raw` text is already escaped.
Several blanks or line ends in sequence become one blank, since they have a meaning in Markdown and LaTeX."""

import re
import unicodedata

_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",  # in some languages, babel gives this character a meaning
    "`": r"\`{}",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
}
_DASHES = re.compile("-(?=-)")  # LaTeX would make one long dash of two dashes
_MARKDOWN = re.compile(r"([\\`*_\[\]<>&|~$#])")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"


class Raw(str):
    """Text that is already escaped for the language of the document."""

    __slots__ = ()


def clean(text: str) -> str:
    """Return ``text`` with U+FFFD in place of control characters and lone surrogates, which documents must not
    contain."""
    return _NO_TEXT.sub(REPLACEMENT, text)


def tex(text: object) -> Raw:
    """Return ``text`` for LaTeX with any engine and font encoding. A letter that some engine or encoding lacks becomes
    ``?``."""
    return text if isinstance(text, Raw) else Raw(_DASHES.sub("-{}", "".join(map(_tex, _one_line(str(text))))))


def markdown(text: object) -> Raw:
    """Return ``text`` for a line of Markdown (CommonMark with GitHub's tables)."""
    return text if isinstance(text, Raw) else Raw(_MARKDOWN.sub(r"\\\1", _one_line(str(text))))


def markdown_code(text: object) -> Raw:
    line = _one_line(str(text))
    if not line:
        return Raw("")
    fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", line)), default=0))
    pad = " " if "`" in (line[0], line[-1]) else ""
    return Raw(f"{fence}{pad}{line}{pad}{fence}")


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _tex(letter: str) -> str:
    if letter in _TEX:
        return _TEX[letter]
    if letter.isascii():
        return letter
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if part.isascii())
    return "".join(_TEX.get(part, part) for part in plain) or "?"
