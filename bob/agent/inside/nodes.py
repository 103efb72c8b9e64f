"""The nodes of a cluster. A node is one member of the cluster: processes in a network of their own, with a disk of
their own. Node number 2 has the address 10.9.0.12, and the client has 10.9.0.1. A bridge connects them all. In the
trace, the name of a device tells who sends or gets a packet: node number 2 has the device "node2", and the client has
the bridge, "br0".

A script of the client (the cluster's setup, workload or check) runs *beside the nodes*: a shell starts all nodes, waits
until the cluster is ready, and runs the script. The shell also restarts a cluster that does not answer."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from bob.agent.inside import processes
from bob.agent.inside.devices import WORK, run_anyhow, write_text
from bob.agent.inside.frames import Denial
from bob.agent.inside.isolation import NAMESPACES, isolated, within_network
from bob.agent.inside.mounts import ROOT, node_place
from bob.agent.inside.world import HOME

MESSAGES = {
    **dict.fromkeys(("net/net_dev_start_xmit", "net/netif_receive_skb"), 'name ~ "node*" || name == "br0"'),
    **dict.fromkeys(("skb/kfree_skb", "skb/consume_skb"), "0"),
}
"""The kernel's events, with filters, that show which packets the nodes and the client sent and got (0: no filter)."""

LATE_PACKETS = "/proc/sys/net/ipv4/tcp_max_tw_buckets"
"""How many closed connections wait for late packets (TIME_WAIT). For some 60 s, a server could not have its port again,
but after a crash no such connection is left. So each node's network has none."""

LOGS, LAUNCHER, READY = f"{WORK}/nodes", f"{WORK}/launch", f"{WORK}/ready"
UNAVAILABLE = 13  # the exit code of a client's script that gets no answer from the cluster
ASK_SECONDS = 5  # one run of the script ``ready`` may take this time
PAUSE_SECONDS = 1.0  # between two runs of it, on a clock that skips waits
REAL_PAUSE_SECONDS = 0.1
REAL_SECONDS_BEFORE = 3  # on the host, the late node waits for the others so long, although they may need it
STARTING = 30.0  # seconds: the nodes may need this time before bob first asks whether they are ready
STARTS = 2  # bob starts the nodes for a check so often, at most
REAL_AGAIN_SECONDS = 5
AGAIN_SECONDS = 20  # a cluster may take this time to heal what a check refuses; waiting is free on a virtual clock


class NodesDocument(NamedTuple):
    """A cluster of ``number`` nodes. It must be ready within ``seconds`` after its start. The node ``late`` starts
    after the others (-1: all start together). If ``alone`` is a node, only this node starts, to show what it has
    recovered (-1: all start)."""

    number: int
    seconds: float
    late: int = -1
    alone: int = -1


def seconds_of_check(seconds: float, ready: float) -> float:
    """Return the longest time of one check of a cluster. The client may take ``seconds``, and each start of the nodes
    ``ready``."""
    return 4 * seconds + AGAIN_SECONDS + STARTS * (ready + STARTING)


def bring_up(count: int) -> None:
    """Make the network of ``count`` nodes, unless the guest has it. Raises Denial if the kernel refuses."""
    if os.path.exists(f"{NAMESPACES}/n{count - 1}"):
        return
    if not processes.is_on_host:  # the host loads modules by itself
        run_anyhow(["modprobe", "-a", "veth", "bridge"], "")
    lines = []
    if not os.path.exists("/sys/class/net/br0"):
        lines = ["link set lo up", "link add br0 type bridge", "addr add 10.9.0.1/24 dev br0", "link set br0 up"]
    for number in range(count):
        name, device, address = f"n{number}", f"node{number}", f"10.9.0.{10 + number}"
        if os.path.exists(f"{NAMESPACES}/{name}"):
            continue
        _ip([], [f"netns add {name}"])
        lines += [f"link add {name} type veth peer name {device} netns {name}", f"link set {name} master br0 up"]
        _ip([], lines)
        _ip(within_network(name), [f"addr add {address}/24 dev {device}", f"link set {device} up", "link set lo up"])
        run_anyhow([*within_network(name), "sh", "-c", f"echo 0 >{LATE_PACKETS}"], "")
        lines = []


def _ip(prefix: list[str], lines: list[str]) -> None:
    """Give ``lines`` to ip(8). The command ``prefix`` runs it elsewhere. ``ip -n`` would not do: it mounts /sys, and a
    sandbox may not."""
    said = subprocess.run(
        [*prefix, "ip", "-batch", "-"], input="\n".join(lines).encode(), capture_output=True, check=False
    )
    if said.returncode:
        words = said.stderr.decode(errors="replace").strip().splitlines()
        raise Denial(f"cannot make the network of the nodes: {words[0] if words else said.returncode}")


def with_nodes(
    nodes: NodesDocument,
    client: list[str],
    placed: Callable[[list[str]], list[str]],
    starts: int,
    again: int = 0,
) -> list[str]:
    """Return a command that starts the nodes, waits until the cluster is ready, and runs the command ``client``. The
    function ``placed`` turns a node's command into one that runs in the program's root file system. If the cluster does
    not answer, the returned command starts it again, up to ``starts`` times in all. If it never answers, the command
    ends with the code UNAVAILABLE. If ``again`` is not 0 and the client fails although the cluster answers, the client
    asks once more after so many seconds. The cluster may have healed itself, and then the client's last words say so.

    If there is only one start, no crash came before, so no node may end. If one does, the command ends with the code
    UNAVAILABLE, and says why.

    If a node is late, it starts when the others are ready, so that another node leads. If the others are not ready in
    time, the late node starts all the same, and the cluster gets the same time again."""
    os.makedirs(LOGS, exist_ok=True)
    for name in os.listdir(LOGS):
        os.unlink(f"{LOGS}/{name}")
    numbers = range(nodes.number)
    in_time = "\n    ".join(_started(nodes, number, placed) for number in numbers if number != nodes.late)
    late = _started(nodes, nodes.late, placed) if nodes.late in numbers else "return 1"
    seconds = max(1, round(nodes.seconds))
    text = _LAUNCHER.format(
        home=HOME,
        in_time=in_time,
        late=late,
        starts=starts,
        all_must_run=int(starts == 1),
        seconds=seconds,
        before=min(seconds, REAL_SECONDS_BEFORE) if processes.is_on_host and nodes.late in numbers else seconds,
        ready=shlex.join(placed(["timeout", str(ASK_SECONDS), f"{HOME}/ready", ROOT])),
        repair=shlex.join(placed([f"{HOME}/repair", ROOT])),
        pause=REAL_PAUSE_SECONDS if processes.is_on_host else PAUSE_SECONDS,
        said=READY,
        logs=" ".join(f"{LOGS}/n{number}" for number in numbers),
        unavailable=UNAVAILABLE,
        again=again,
    )
    write_text(LAUNCHER, text)
    return ["sh", LAUNCHER, *client]


def with_node_alone(nodes: NodesDocument, client: list[str], placed: Callable[[list[str]], list[str]]) -> list[str]:
    """Return a command that starts only the node ``nodes.alone``, and runs the command ``client``. If the node ends
    meanwhile, the output has the node's last words."""
    os.makedirs(LOGS, exist_ok=True)
    log = f"{LOGS}/n{nodes.alone}"
    write_text(log, "")
    text = _ALONE.format(start=_started(nodes, nodes.alone, placed), log=log)
    write_text(LAUNCHER, text)
    return ["sh", LAUNCHER, *client]


_ALONE = """
pids=
{start}
"$@"
code=$?
if ! [ -e /proc/${{pids# }} ] || grep -q '^State:.Z' /proc/${{pids# }}/status; then
    echo "the node has ended: $(tail -n 1 {log})"
fi
exit $code
"""

_LAUNCHER = """
start() {{
    pids=
    {in_time}
}}
join() {{
    {late}
}}
has_ended() {{
    read -r _ _ state _ 2>/dev/null </proc/$1/stat && [ $state != Z ] && return 1
    return 0
}}
all_have_ended() {{
    for pid in $pids; do has_ended $pid || return 1; done
}}
an_end_is_wrong() {{
    [ {all_must_run} = 1 ] || return 1
    set -- {logs}
    for pid in $pids; do
        if has_ended $pid; then
            wait $pid
            echo "node ${{1##*/}} ended with the exit code $?: $(tail -n 1 $1)" >&2
            return 0
        fi
        shift
    done
    return 1
}}
is_ready() {{
    [ -x {home}/ready ] || return 0
    until=$(($(date +%s) + $1))
    until {ready} >{said} 2>&1; do
        [ "$(date +%s)" -lt $until ] || return 1
        sleep {pause}
        all_have_ended && return 1
        an_end_is_wrong && exit {unavailable}
    done
    return 0
}}
gets_ready() {{
    if is_ready {before}; then join; return 0; fi
    join && is_ready {seconds}
}}
ask() {{
    [ {again} != 0 ] || {{ "$@"; return; }}
    "$@" >{said} 2>&1
    first=$?
    if [ $first != 0 ] && [ $first != {unavailable} ]; then
        sleep {again}
        if "$@" >/dev/null 2>&1; then
            echo "$(tail -n 1 {said}) (a window: after {again} s all is well)" >>{said}
        fi
    fi
    cat {said}
    return $first
}}
end() {{
    for pid in $pids; do
        # Its child is the first process of the node. One that only begins has none yet, or another for a moment.
        until has_ended $pid; do
            child=
            read -r child _ 2>/dev/null </proc/$pid/task/$pid/children
            kill -s KILL ${{child:-$pid}} 2>/dev/null
        done
    done
    wait $pids 2>/dev/null
}}
left={starts}
while start; do
    left=$((left - 1))
    if gets_ready; then
        ask "$@"
        code=$?
        [ $code = 0 ] && an_end_is_wrong && exit {unavailable}
        [ $code = {unavailable} ] && [ $left -gt 0 ] || exit $code
    elif [ $left = 0 ]; then
        an_end_is_wrong && exit {unavailable}
        words="the cluster is not ready within {seconds} s"
        for log in {logs} {said}; do
            [ ! -s $log ] || words="$words; ${{log##*/}} says: $(tail -n 1 $log)"
        done
        echo "$words" >&2
        exit {unavailable}
    fi
    end
    if [ -x {home}/repair ]; then {repair}; fi
done
"""


def _started(nodes: NodesDocument, number: int, placed: Callable[[list[str]], list[str]]) -> str:
    """Return a shell command that starts a node in the background."""
    words = placed([f"{HOME}/node", str(number), node_place(number), str(nodes.number)])
    return f'{shlex.join(isolated(number, words))} </dev/null >{LOGS}/n{number} 2>&1 & pids="$pids $!"'
