"""The messages between the nodes of a cluster, from the kernel's trace of packets. A *node* is a member of the cluster,
and the client counts as one more node, the last one. A message is a packet that a node has received. The kernel hands a
packet on by the address of its buffer, so bob finds the sender of a received packet by this address.

bob must not take a message for one that was sent earlier, or by another node. Otherwise, a crash state might lack a
write that the message depends on, and would be impossible. bob cannot always know the sender, because the bridge copies
a broadcast into other buffers. Then the message counts as sent by all other nodes, each with its last packet before."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bob.trace.timeline import PacketFreed, PacketReceived, PacketSent, Timeline, TimelineEvent

CLIENT_DEVICE = "br0"  # the client's network device; node number 2 has "node2" (bob/agent/inside/nodes.py)


class Message(NamedTuple):
    """A message between two nodes, which are numbers from 0. ``sent`` and ``received`` are times of one clock."""

    sender: int
    sent: int
    receiver: int
    received: int


def devices(nodes: int) -> dict[str, int]:
    """Return the number of the node that each network device belongs to, in a cluster of ``nodes`` members. The client
    has the number ``nodes``."""
    return {**{f"node{number}": number for number in range(nodes)}, CLIENT_DEVICE: nodes}


def messages(timeline: Timeline, nodes: int) -> tuple[Message, ...]:
    """Return the messages between ``nodes`` members and the client, in the order of their arrival."""
    return tuple(_messages(timeline.events, devices(nodes)))


def _messages(events: Iterable[TimelineEvent], owners: dict[str, int]) -> Iterator[Message]:
    under_way: dict[str, tuple[int, int]] = {}  # by the address of the buffer: the sender, and when it sent
    last: dict[int, int] = {}  # by the number of a node: when it sent its last packet so far
    for event in events:
        match event:
            case PacketSent() if event.device in owners:
                sender = owners[event.device]
                under_way[event.packet] = sender, event.at.time
                last[sender] = event.at.time
            case PacketReceived() if event.device in owners:
                receiver, received = owners[event.device], event.at.time
                found = under_way.pop(event.packet, None)
                sources = last.items() if found is None else [found]
                yield from (Message(sender, sent, receiver, received) for sender, sent in sources if sender != receiver)
            case PacketFreed():
                under_way.pop(event.packet, None)
