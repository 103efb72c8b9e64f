"""Messages from packets, against a made-up network that knows who sent what. Buffers are few, so their addresses come
again and again."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bob.trace.messages import Message, devices, messages
from bob.trace.model import Moment
from bob.trace.timeline import PacketFreed, PacketReceived, PacketSent, Timeline, TimelineEvent, parse_timeline

NODES, BUFFERS = 2, 4
NAMES = {number: name for name, number in devices(NODES).items()}


@dataclass
class Network:
    """Each packet under way has a buffer. The network delivers it, drops it, or copies it into other buffers."""

    random: Random
    events: list[TimelineEvent] = field(default_factory=list)
    under_way: dict[str, tuple[int, int]] = field(default_factory=dict)
    true: list[Message] = field(default_factory=list)

    @property
    def now(self) -> Moment:
        return Moment(len(self.events) + 1, 0.0)

    def free(self) -> str | None:
        left = [f"{number:x}" for number in range(BUFFERS) if f"{number:x}" not in self.under_way]
        return self.random.choice(left) if left else None

    def send(self) -> None:
        if (buffer := self.free()) is not None:
            sender, at = self.random.randrange(NODES + 1), self.now
            self.events.append(PacketSent(at, buffer, NAMES[sender]))
            self.under_way[buffer] = sender, at.time

    def copy(self) -> None:
        if self.under_way and (buffer := self.free()) is not None:
            self.under_way[buffer] = self.under_way[self.random.choice(sorted(self.under_way))]

    def deliver(self) -> None:
        if self.under_way:
            buffer = self.random.choice(sorted(self.under_way))
            receiver, at = self.random.randrange(NODES + 1), self.now
            sender, sent = self.under_way.pop(buffer)
            self.events.append(PacketReceived(at, buffer, NAMES[receiver]))
            if sender != receiver:
                self.true.append(Message(sender, sent, receiver, at.time))

    def drop(self) -> None:
        if self.under_way:
            buffer = self.random.choice(sorted(self.under_way))
            del self.under_way[buffer]
            self.events.append(PacketFreed(self.now, buffer))


def network(seed: int, acts: list[str]) -> Network:
    made = Network(Random(seed))
    for act in acts:
        getattr(made, act)()
    return made


@given(st.integers(), st.lists(st.sampled_from(["send", "deliver", "drop"]), max_size=40))
def test_without_copies_each_message_is_known(seed: int, acts: list[str]) -> None:
    made = network(seed, acts)
    assert list(messages(Timeline(tuple(made.events)), NODES)) == made.true


@given(st.integers(), st.lists(st.sampled_from(["send", "send", "copy", "deliver", "drop"]), max_size=60))
def test_with_copies_each_message_needs_at_least_what_it_needs(seed: int, acts: list[str]) -> None:
    """The sender's moment must be at least the true one: fewer needs would allow crashes that cannot happen."""
    made = network(seed, acts)
    found = messages(Timeline(tuple(made.events)), NODES)
    for true in made.true:
        alike = (one for one in found if one.sender == true.sender and one.receiver == true.receiver)
        assert any(one.received == true.received and one.sent >= true.sent for one in alike)


def test_a_buffer_that_was_freed_does_not_name_the_sender_of_a_later_copy() -> None:
    """Without the event that frees the buffer, bob would take a message of node 1 for one of node 0."""

    def at(time: int) -> Moment:
        return Moment(time, 0.0)

    dropped = PacketSent(at(1), "a", "node0")
    later = (PacketSent(at(3), "b", "node1"), PacketReceived(at(4), "a", "br0"))  # "a" is now a copy of "b"
    found = messages(Timeline((dropped, PacketFreed(at(2), "a"), *later)), NODES)
    assert set(found) == {Message(0, 1, 2, 4), Message(1, 3, 2, 4)}
    assert set(messages(Timeline((dropped, *later)), NODES)) == {Message(0, 1, 2, 4)}


LINES = """\
          <idle>-0       [000] b.s1.  1327.244011: net_dev_start_xmit: dev=node1 queue_mapping=0 skbaddr=000000002091976b \
vlan_tagged=0 vlan_proto=0x0000 vlan_tci=0x0000 protocol=0x86dd ip_summed=0 len=70 data_len=0 network_offset=14 \
transport_offset_valid=1 transport_offset=54 tx_flags=0 gso_size=0 gso_segs=0 gso_type=0x0
          <idle>-0       [000] ..s1.  1327.244028: netif_receive_skb: dev=br0 skbaddr=000000002091976b len=56
          <idle>-0       [000] ..s1.  1327.244033: kfree_skb: skbaddr=000000002091976b protocol=34525 \
location=0000000095573917 reason: NOT_SPECIFIED
          python3-812     [000] b..1.  1327.244036: consume_skb: skbaddr=000000004765830b
"""


def test_the_kernels_lines_are_read() -> None:
    timeline = parse_timeline(LINES)
    assert timeline.events == (
        PacketSent(Moment(1, 1327.244011), "000000002091976b", "node1"),
        PacketReceived(Moment(2, 1327.244028), "000000002091976b", "br0"),
        PacketFreed(Moment(3, 1327.244033), "000000002091976b"),
        PacketFreed(Moment(4, 1327.244036), "000000004765830b"),
    )
    assert messages(timeline, 3) == (Message(1, 1, 3, 2),)


@pytest.mark.parametrize("device", ["n1", "lo", "eth0"])
def test_other_devices_are_no_nodes(device: str) -> None:
    assert messages(Timeline((PacketReceived(Moment(1, 0.0), "a", device),)), NODES) == ()
