"""Guests that stay for the next user, and agents that are sound no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from bob.agent.client import Agent, AgentBroken
from bob.agent.inside.frames import encode
from bob.agent.loss import GuestLost, Loss, LossCause
from bob.errors import UsageError
from bob.guest.spec import Clock
from bob.progress import Silent
from bob.run import agents
from bob.run.agents import KeptGuests, unshared
from bob.run.pool import each_in_a_guest

LOSS = GuestLost(Loss(LossCause.HUNG, ""), "no answer")


class Answers:
    """A stream with these answers, after the first one; then the guest is lost."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self._left = BytesIO(b"".join(encode(one, b"") for one in ({"ok": True}, *answers)))
        self.is_closed = False

    def read_exactly(self, length: int, timeout: float) -> bytes:
        if len(data := self._left.read(length)) < length:
            raise LOSS
        return data

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


OK, REFUSED, BROKEN = {"ok": True}, {"ok": False, "error": "no"}, {"ok": False, "error": "no", "broken": True}


@pytest.mark.parametrize(
    ("answers", "is_sound"),
    [((), False), ((OK,), True), ((REFUSED,), True), ((BROKEN,), False), ((BROKEN, OK), False)],
)
def test_an_agent_that_failed_is_sound_no_more(answers: tuple[dict[str, Any], ...], is_sound: bool) -> None:
    agent = Agent(Answers(*answers))
    assert agent.is_sound
    for _answer in answers or (None,):
        with suppress(GuestLost, AgentBroken, UsageError):
            agent.ask("something", timeout=1)
    assert agent.is_sound is is_sound


class Booted:
    """A hypervisor of which each guest has another number; the ``story`` says what became of them."""

    memory_mib = 2048

    def __init__(self) -> None:
        self.story: list[str] = []
        self.streams: list[Answers] = []

    @contextmanager
    def guest(self, _spec: object) -> Iterator[Any]:
        number = sum(one.startswith("start") for one in self.story) + 1
        self.story.append(f"start {number}")
        try:
            yield self
        finally:
            self.story.append(f"end {number}")

    awake = suppress


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> Booted:
    found = Booted()

    def stream(_guest: object) -> Answers:
        found.streams.append(Answers(OK))
        return found.streams[-1]

    monkeypatch.setattr(agents, "agent_stream", stream)
    monkeypatch.setattr(agents, "GuestSpec", lambda *_, **__: None)
    return found


def test_a_guest_is_handed_on_where_its_user_ended_well_and_all_end_with_the_block(booted: Booted) -> None:
    class Image:
        name = "an-image"

    image: Any = Image()
    with KeptGuests(booted) as guests:  # type: ignore[arg-type]

        def use(clock: Clock = Clock.REAL, world: Path | None = None, *, asks: int = 1) -> Agent:
            with agents.agent_in(guests, image, clock, world) as agent:
                for _time in range(asks):
                    agent.ask("something", timeout=1)
                return agent

        first = use()
        assert use(asks=0) is first
        assert unshared(guests) is booted is unshared(booted), "no script that spoils things leaves any in these"  # type: ignore[arg-type]
        with agents.agent_in(guests, image, Clock.REAL) as held:
            assert use() is not held is first
        assert booted.story == ["start 1", "start 2"]
        use(world=Path("/a/world"), asks=0)
        assert booted.story[2:] == ["start 3"]
        use(Clock.VIRTUAL)
        use(Clock.VIRTUAL)
        assert booted.story[3:] == ["start 4", "end 4", "start 5", "end 5"]
        del booted.story[:]
        with pytest.raises(GuestLost):
            use(asks=1)  # the first guest has no answer left
        with pytest.raises(ZeroDivisionError), agents.agent_in(guests, image, Clock.REAL):
            raise ZeroDivisionError
        assert len(booted.story) == 2 and all(one.startswith("end") for one in booted.story)
    assert len(booted.story) == 3 and all(stream.is_closed for stream in booted.streams)


def test_an_agent_that_was_lost_and_let_go_in_silence_is_not_handed_on(booted: Booted) -> None:
    class Image:
        name = "an-image"

    image: Any = Image()
    asked: list[Agent] = []

    def do(agent: Agent, _item: int) -> None:
        asked.append(agent)
        agent.ask("something", timeout=1)

    with KeptGuests(booted) as guests:  # type: ignore[arg-type]
        assert (
            len(list(each_in_a_guest(guests, image, Clock.REAL, [("item", 0), ("item", 1), ("item", 2)], do, Silent())))
            == 3
        )
    assert len(set(map(id, asked))) == 3  # each guest here has one answer
