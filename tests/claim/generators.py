"""Expectations at random."""

from __future__ import annotations

from hypothesis import strategies as st

from bob.claim.expectation.syntax import (
    Absent,
    And,
    Attribute,
    ByteRange,
    Content,
    Exists,
    Formula,
    KeptContents,
    Mounts,
    NamedPath,
    Not,
    Or,
    Same,
    SizeRelation,
    Source,
    StatField,
    StatIs,
)
from bob.workload.language import EARLIEST, LATEST, UNOBSERVED, UNOBSERVED_PREFIX

LETTERS = st.characters(exclude_characters="/\0", exclude_categories=("Cs",))
COMPONENTS = st.text(LETTERS, min_size=1, max_size=6).filter(
    lambda word: word not in (".", "..", *UNOBSERVED) and not word.startswith(UNOBSERVED_PREFIX)
)
NAMES = st.lists(COMPONENTS, min_size=1, max_size=3).map(lambda parts: NamedPath("/" + "/".join(parts)))
SOURCES = st.one_of(st.integers(1, 9), st.sampled_from([KeptContents.OLD, KeptContents.NEW])).map(Source)
WORDS = st.text(LETTERS, min_size=1, max_size=6)
RANGES = st.tuples(st.integers(0, 9999), st.integers(1, 9999)).map(lambda pair: ByteRange(pair[0], sum(pair)))


def anything_about(names: st.SearchStrategy[NamedPath]) -> st.SearchStrategy[Formula]:
    """Expectations about these names."""
    atoms = st.one_of(
        st.builds(Mounts),
        st.builds(Exists, names),
        st.builds(Absent, names),
        st.builds(Same, names, names),
        st.builds(StatIs, names, st.just(StatField.SIZE), st.integers(0, 2**40), st.sampled_from(SizeRelation)),
        st.builds(Content, names, st.one_of(SOURCES, st.sampled_from(KeptContents).map(Source))),
        st.builds(Content, names, st.one_of(SOURCES, st.just(Source(KeptContents.ZEROS))), RANGES),
        st.builds(Content, names, SOURCES, prefix=st.just(True)),
        st.builds(StatIs, names, st.just(StatField.LINKS), st.integers(0, 99), st.sampled_from(SizeRelation)),
        st.builds(StatIs, names, st.just(StatField.MODE), st.integers(0, 0o777)),
        st.builds(StatIs, names, st.just(StatField.OWNER), st.tuples(st.integers(0, 99999), st.integers(0, 99999))),
        st.builds(
            StatIs, names, st.just(StatField.TIME), st.integers(EARLIEST // 2, LATEST // 2).map(lambda half: 2 * half)
        ),
        st.builds(StatIs, names, st.just(StatField.TARGET), WORDS),
        st.builds(Attribute, names, WORDS, SOURCES),
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            *(st.builds(kind, inner, inner) for kind in (And, Or)),
            st.builds(Or, st.builds(Not, inner), inner),
        ),
        max_leaves=12,
    )
