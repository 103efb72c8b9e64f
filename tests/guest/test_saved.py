"""Saved states as files."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from bob.guest.domain_xml import Identity
from bob.guest.saved import BadState, SavedState


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bob" / "saved"


def test_everything_in_the_definition_counts() -> None:
    states = [SavedState.of("a", "b"), SavedState.of("ab"), SavedState.of("b", "a"), SavedState.of("a", "b", "")]
    assert len({state.path for state in states}) == 4
    assert len({state.identity for state in states}) == 4
    assert SavedState.of("a", "b") == states[0]


def test_a_copy_has_another_identity_and_the_same_rest(tmp_path: Path) -> None:
    state = SavedState.of("guest")
    memory = os.urandom(100_000)
    header = f"LibvirtQemudSave<name>{state.identity.name}</name><uuid>{state.identity.uuid}</uuid>".encode()
    state.path.write_bytes(header + memory)
    someone = Identity(uuid.uuid4())
    copy = tmp_path / "copy"
    state.copy_for(someone, copy)
    data = copy.read_bytes()
    assert data.startswith(f"LibvirtQemudSave<name>{someone.name}</name><uuid>{someone.uuid}</uuid>".encode())
    assert data.endswith(memory)
    assert len(data) == len(header) + len(memory)


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    state = SavedState.of("guest")
    state.path.write_bytes(b"\0" * 100_000)
    with pytest.raises(BadState):
        state.copy_for(Identity(uuid.uuid4()), tmp_path / "copy")


def test_commit_is_all_or_nothing() -> None:
    state = SavedState.of("guest")
    state.part.write_bytes(b"half")
    assert not state.exists()
    state.commit()
    assert state.exists()
    assert not state.part.exists()


def test_what_nobody_uses_goes() -> None:
    old, new = SavedState.of("old"), SavedState.of("new")
    old.path.touch()
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(old.path, (long_ago, long_ago))
    new.part.touch()
    new.commit()
    assert not old.exists()
    assert new.exists()


def test_one_saves_the_other_waits() -> None:
    state = SavedState.of("guest")
    with state.locked(0) as mine, state.locked(0.1) as too:
        assert (mine, too) == (True, False)
