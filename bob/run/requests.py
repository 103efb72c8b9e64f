"""Turn the user's options into requests for experiments. In a *probe*, bob tests properties of a file system with
workloads that a probe file declares. The command line and Python share these options. A mistake in an option raises
UsageError before anything starts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bob.catalogue.probe_files import check_own, layer_probes, load_rows, parse_finish
from bob.catalogue.request import CheckPlace, Host, ProbeRequest
from bob.claim.expectation.evaluate import check
from bob.claim.expectation.language import parse as parse_expectation
from bob.claim.expectation.syntax import Expectation
from bob.crash.caches import CACHES
from bob.errors import PointedError, UsageError, meant
from bob.guest.capacity import check_device, check_jobs
from bob.judge.question import Trial
from bob.program.program import Pace, Program
from bob.run.guest_images import asked_images
from bob.run.option_table import (
    MOST_WITNESSES,
    ClusterExploration,
    Exploration,
    FileSystemOptions,
    GuestOptions,
    Questions,
    StateExploration,
)
from bob.run.option_values import ALL, property_names
from bob.schema import adapt
from bob.subject import ConfigurationSet, FileSystem, Subject, cluster_of
from bob.workload.finishes import default_finishes
from bob.workload.history import History
from bob.workload.lacking import LACKABLE
from bob.workload.language import parse, places
from bob.workload.operations import IMPORTED, At, Operation, Workload
from bob.workload.simulation import RefusedError, simulate

RECORDED_ON = "ext4"  # if only models answer, bob records the program on this file system, at its undisturbed pace
TABLE_1 = Questions()


def request(
    configuration: Subject,
    exploration: StateExploration,
    image: str,
    host: Host,
    questions: Questions = TABLE_1,
) -> ProbeRequest:
    """Return the request to probe ``configuration``. Raise the errors of :func:`checked`."""
    asked = adapt(ProbeRequest, questions, configuration=configuration, image=image, host=host)
    budget, seed, audit = exploration.budget, exploration.seed, exploration.audit
    return checked(replace(asked, budget=budget, seed=seed, audit=audit, model=exploration.model))


def with_rows_of(chosen: ConfigurationSet, questions: Questions) -> tuple[ConfigurationSet, Questions]:
    """Return ``chosen`` and ``questions``. Rows are properties to test. If the set ``chosen`` has rows of its own, the
    returned questions have the probes that test them. But if ``questions`` already choose properties or rows, return
    these questions unchanged, and the set without its rows. Raise UsageError for a mistake in the file with the set's
    rows, or if a configuration asks for a row that this file lacks."""
    if chosen.rows is None:
        return chosen, questions
    if questions != replace(TABLE_1, recovery_crashes=questions.recovery_crashes):
        return replace(chosen, rows=None, asks={}), questions
    probes = load_rows(chosen.rows)
    names = [probe.property.name for probe in probes]
    for name, asks in chosen.asks.items():
        if unknown := [one for one in asks if one not in names]:
            raise UsageError(f"{name} asks for the unknown row {unknown[0]!r}", hint=meant(unknown[0], names))
    return chosen, replace(questions, probes=probes)


def program_requests(
    program: Program,
    file_systems: Sequence[str],
    options: FileSystemOptions,
    paces: Sequence[Pace],
    exploration: Exploration,
    image: str,
    guests: GuestOptions,
    *,
    scheduler: str | None = None,
    checks: CheckPlace = CheckPlace.AUTO,
    progress: Callable[[str], None],
) -> list[ProbeRequest]:
    """Return requests for ``program``: one for each file system at each of ``paces`` (how fast the program runs). If
    ``paces`` is empty, take all paces, but leave out SLOWER where it would not be slower than SLOW. If ``guests`` names
    a kernel, build a guest image from ``image`` with this kernel. Without a size in ``options``, the device is as
    large as the program needs."""
    made = [options.of(name, program.device) for name in dict.fromkeys(file_systems)]
    systems = [one.fs for one in made]
    [image] = asked_images(
        (image,), guests, systems, completion=exploration.completion, scheduler=scheduler, progress=progress
    )
    host = replace(guests.host(scheduler), checks=checks)
    asked = [request(one, exploration, image, host) for one in made]
    each = tuple(dict.fromkeys(paces))
    return [replace(one, pace=pace) for one in asked for pace in each or Pace.on(one.configuration.fs.commit)]


def cluster_requests(
    cluster: Program,
    file_systems: Sequence[str],
    options: FileSystemOptions,
    exploration: ClusterExploration,
    image: str,
    guests: GuestOptions,
    *,
    only_durable: bool,
    checks: CheckPlace = CheckPlace.AUTO,
    progress: Callable[[str], None],
) -> list[ProbeRequest]:
    """Return requests for ``cluster``, a program that runs on several nodes: one request for each of ``file_systems``.
    An item of ``file_systems`` is one name for all nodes, or a list of names with commas, one for each node. With
    ``only_durable``, bob only tries states with nothing but the durable writes. Raise UsageError if the length of a
    list of names is not the number of nodes."""
    made = [_cluster(cluster, names, options) for names in dict.fromkeys(file_systems)]
    systems = [node.fs for one in made for node in one.nodes]
    completion = exploration.completion
    [image] = asked_images((image,), guests, systems, completion=completion, scheduler=None, progress=progress)
    host = replace(guests.host(None), checks=checks)
    asked = [request(one, exploration, image, host) for one in made]
    return [
        replace(one, only_durable=only_durable, cut=exploration.cut, by_rules=not exploration.every) for one in asked
    ]


def _cluster(cluster: Program, names: str, options: FileSystemOptions) -> Subject:
    each = names.split(",")
    if len(each) not in (1, cluster.nodes):
        raise UsageError(
            f"--fs {names} names {len(each)} file systems, and {cluster.name} has {cluster.nodes} nodes",
            hint="name one for all nodes, or one for each node",
        )
    nodes = [options.of(name, cluster.device) for name in each]
    return cluster_of(nodes if len(nodes) == cluster.nodes else nodes * cluster.nodes)


def checked(request: ProbeRequest) -> ProbeRequest:
    """Return ``request`` in its final form: each property occurs once, and the word ``all`` is replaced by the names of
    all properties. Raise UsageError for unknown properties, two probes with one name, an impossible device, too many
    guests, and numbers out of range."""
    check_device(request.configuration)
    cache, disks = request.model.write_cache, len(request.configuration.disks)
    if cache.one_disk_only and disks > 1:
        others = ", ".join(name for name, one in CACHES.items() if not one.one_disk_only)
        raise UsageError(
            f"the write cache {cache.name!r} is for one disk, and this stack has {disks}", hint=f"use {others}"
        )
    check_own(request.probes)
    _check_numbers(request)
    known = (*property_names(request.rows), *(_names_for_layers() if request.configuration.layers else ()))
    names = [name for one in request.properties for name in (known if one == ALL else (one,))]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown property {unknown[0]!r}", hint=meant(unknown[0], [*known, ALL]))
    return replace(request, properties=tuple(dict.fromkeys(names)))


def _names_for_layers() -> tuple[str, ...]:
    return tuple(probe.property.name for probe in layer_probes())


def _check_numbers(request: ProbeRequest) -> None:
    if request.budget < 1:
        raise UsageError(f"invalid budget {request.budget}; expected 1 or more", hint="it counts mounts per workload")
    if not 0 <= request.audit <= 1:
        raise UsageError(f"invalid audit {request.audit}; expected a share from 0 to 1", hint="for example 0.01")
    if request.recovery_crashes < 0:
        raise UsageError(f"cannot crash {request.recovery_crashes} recoveries", hint="expected 0 or more")
    if request.recovery_depth < 1:
        raise UsageError(f"invalid recovery depth {request.recovery_depth}", hint="expected 1 or more")
    if request.recovery_depth > 1 and not request.recovery_crashes:
        raise UsageError("a recovery depth alone crashes no recovery", hint="add --recovery-crashes N")
    check_jobs(request.host.jobs)


@dataclass(frozen=True, slots=True)
class PartLabels:
    setup: str
    operations: str
    finish: str
    expect: str


PYTHON_PARTS = PartLabels("setup", "operations", "finishes", "expect")  # the names of the arguments of :func:`bob.try_`


@dataclass(frozen=True, slots=True)
class QuickQuestion:
    """A quick question (`bob try`) as text that bob has not parsed yet. ``operations`` run on the tree that ``setup``
    makes, and ``expected`` says what must be true after a crash. Each of ``finishes`` says how the workload may end,
    for example with an fsync. bob asks the question once for each finish. If ``finishes`` is empty, bob takes default
    finishes. ``parts`` has a name for each of these texts. If a text has a mistake, the message contains its name.
    ``at`` says when crashes may come."""

    operations: str
    expected: Sequence[str]
    setup: str = ""
    finishes: Sequence[str] = ()
    at: At = At.END
    most_witnesses: int = MOST_WITNESSES
    parts: PartLabels = PYTHON_PARTS


def trial(question: QuickQuestion, request: ProbeRequest) -> Trial:
    """Return the trial (the parsed question) of ``question``. Raise a UsageError that points at a mistake in the text,
    and the errors of :func:`checked`."""
    request = checked(request)
    workloads, history = _workloads(question, request.configuration.fs)
    if not question.expected:
        raise UsageError("an expectation is missing", hint=f"{question.parts.expect}, for example 'content /a = new'")
    if question.most_witnesses < 1:
        raise UsageError(f"cannot keep {question.most_witnesses} witnesses", hint="expected 1 or more per expectation")
    expectations = tuple(_expectation(text, history, question.parts.expect) for text in question.expected)
    return Trial(request, workloads, expectations, question.most_witnesses)


def trial_of_import(expected: Sequence[str], most_witnesses: int, request: ProbeRequest) -> Trial:
    """Return the trial of a recording that another program made: what the user expects of the tree after a crash. bob
    does not know the operations of such a recording. Raise the errors of :func:`trial`."""
    request = checked(request)
    workload = Workload("imported", (), (), IMPORTED)
    history = simulate(workload)[0]
    expectations = tuple(_expectation(text, history, "--expect") for text in expected)
    return Trial(request, (workload,), expectations, most_witnesses)


def _workloads(question: QuickQuestion, fs: FileSystem) -> tuple[tuple[Workload, ...], History]:
    parts = question.parts
    with _naming(parts.setup):
        initial = parse(question.setup)
    with _naming(parts.operations):
        performed = parse(question.operations)
    if not performed:
        raise UsageError("the operations are missing", hint="for example 'write /a 0 4096; fsync /a'")
    texts = ((parts.setup, question.setup, initial), (parts.operations, question.operations, performed))
    for part, text, done in texts:
        _check_lacks(part, text, done, fs)
    asked = []
    for finish in question.finishes:
        with _naming(parts.finish):
            asked.append(parse_finish(finish, performed))
    try:
        history = simulate(Workload("try", initial, performed))[0]
        workloads = [
            Workload("try", initial, performed, finish, question.at)
            for finish in dict.fromkeys(asked) or default_finishes(history)
        ]
        for workload in workloads:
            simulate(workload)
    except RefusedError as error:
        is_there = f"the tree of {parts.setup} is there when the first operation begins"
        hint = None if error.is_too_large else is_there
        for part, text, done in texts:
            for one, place in zip(done, places(text), strict=True):
                if one is error.operation:
                    with _naming(part):
                        raise PointedError(error.why, text, *place, hint=hint) from None
        raise UsageError(f"{parts.finish}: {error.why}", hint=hint) from None
    return tuple(workloads), history


def _check_lacks(part: str, text: str, done: tuple[Operation, ...], fs: FileSystem) -> None:
    for one, place in zip(done, places(text), strict=True):
        for lacked, said in fs.refusals:
            if LACKABLE[lacked](one):
                hint = f"the kernel says: {said}; {fs.name} lacks {', '.join(fs.lacks)}"
                with _naming(part):
                    raise PointedError(f"{fs.name} does not support '{lacked}'", text, *place, hint=hint)


def _expectation(text: str, history: History, part: str) -> Expectation:
    with _naming(part):
        found = parse_expectation(text)
        check(found, history)
    return found


@contextmanager
def _naming(part: str) -> Iterator[None]:
    """Improve the message of a mistake that the code in the with block finds in a text. The message then names the text
    (``part``) and the place of the mistake in the text."""
    try:
        yield
    except PointedError as error:
        raise PointedError(
            f"{part}, {error.place}: {error.message}", error.text, error.start, error.stop, hint=error.hint
        ) from None
