"""Results made up for tests: every kind of cell, and numbers from small to beyond 2^53."""

from __future__ import annotations

from dataclasses import replace

from bob.answer.answer import Answer, ByRecording, ClaimWords, Way
from bob.answer.result import TROUBLE, UNMOUNTABLE, Environment, Result, Run, SubjectResult, beside
from bob.catalogue.sets import RowSet, probes_of
from bob.claim.verdict import Verdict
from bob.crash.coverage import NOTHING, States
from bob.crash.device import DeviceModel, DeviceModelDocument
from bob.judge.column import claim_words
from bob.observe.observations import TroubleKind
from bob.observe.unknown_torn import TornCause
from bob.report.rows import FAMILIES

EVIDENCE = (
    "operation 2 (overwrite /a at 0, 4096 bytes) is partial: sectors 0-3 have its data, sectors 4-7 have that of "
    "operation 0, after write 17 was torn"
)
KERNEL_SAYS = "EXT4-fs (loop0): VFS: Found ext4 filesystem with invalid superblock checksum.  Run e2fsck?"


def cell(name: str, verdict: Verdict, states: States, workloads: int = 12, **more: str | None) -> Answer:
    """A cell in which every third workload gave the verdict (for HOLDS, each of them)."""
    family = next(family for family, names in FAMILIES.items() if name in names)
    asked = tuple(
        ByRecording(
            name=f"workload {place // 3}",
            finish=("natural", "natural 2.5", "fsync /d/a")[place % 3],
            verdict=verdict if place % 3 == 0 else Verdict.HOLDS,
            states=states,
            violations=7 if verdict is Verdict.FAILS and place % 3 == 0 else 0,
        )
        for place in range(workloads)
    )
    return answer(ClaimWords("property", name, family), verdict, states, asked, **more)


def answer(
    claim: ClaimWords,
    verdict: Verdict,
    states: States,
    asked: tuple[ByRecording, ...] = (),
    evidence: str | None = None,
    witness: str | None = None,
    reason: str | None = None,
) -> Answer:
    """An answer with one way at most: with this evidence, in as many states as its recordings say."""
    violations = sum(one.violations for one in asked)
    ways = (Way(evidence, violations, witness),) if evidence is not None else ()
    return Answer(claim, verdict, states, ways, asked, reason)


def named(cell: Answer, name: str, **more: str) -> Answer:
    """The same answer of the row ``name``."""
    return replace(cell, claim=replace(cell.claim, name=name, **more))


def mostly_unknown() -> SubjectResult:
    """A configuration with a property that holds although few of its torn states are explored."""
    some = cell("append-any", Verdict.HOLDS, States(812, 4096, 2**88, None, 203, 700), workloads=1)
    asked = tuple(replace(one, unknown_torn=TornCause.METADATA) for one in some.recordings)
    return replace(configuration(), answers=(replace(some, recordings=asked),), notes=())


MOSTLY_UNKNOWN = (
    "less than half of the torn states are explored for append-any: most of the others are of 'workload 0' (natural), "
    "where recovery reads torn metadata"
)
"""The note about it."""


def trouble(kind: TroubleKind, *ways: Way) -> Answer:
    """That something is wrong with crash states that mount."""
    return beside(TROUBLE, kind.value, ways)


def unmountable(states: int, witness: str | None, error: str) -> Answer:
    """That crash states do not mount."""
    return beside(UNMOUNTABLE, UNMOUNTABLE, [Way(error, states, witness)])


SIXTEEN = (
    *("ext2", "ext2-sync", "ext3-writeback", "ext3-ordered", "ext3-datajournal", "ext4-writeback", "ext4-ordered"),
    *("ext4-nodelalloc", "ext4-datajournal", "btrfs", "xfs", "xfs-wsync", "reiserfs-nolog", "reiserfs-writeback"),
    *("reiserfs-ordered", "reiserfs-datajournal"),
)
"""The configurations of Table 1, in its order."""

FAILING = {
    "single-sector-append": "0 2 5 13",
    "single-block-overwrite": "0 1 2 3 5 6 7 10 11 12 13 14",
    "single-block-append": "0 1 2 5 12 13",
    "multi-block-append": "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    "directory-op": "0 1 12",
    "overwrite-any": "0 2 3 5 6 7 10 11 12 13 14",
    "append-any": "0 2 5 6 9 10 12 13",
    "directory-op-any": "0 9 12",
}
"""Where a made-up table of sixteen columns has a ×, by the places in SIXTEEN: about as many as a real one."""


def sixteen() -> Result:
    """A run over all of Table 1: cells of all kinds, and a configuration that could not be tested."""
    columns = []
    for place, name in enumerate(SIXTEEN):
        kinds = {row: Verdict.FAILS for row, places in FAILING.items() if str(place) in places.split()}
        kinds |= {"append-rename-any": Verdict.UNKNOWN} if name == "xfs" else {}
        kinds |= dict.fromkeys(_names(), Verdict.SKIPPED) if name == "reiserfs-nolog" else {}
        columns.append(replace(configuration(name), answers=tuple(_like(row, kinds.get(row)) for row in _names())))
    return replace(result(), subjects=tuple(columns))


def _like(name: str, verdict: Verdict | None) -> Answer:
    some = States(812, 4096, 2**88, None, 0, 700)
    match verdict:
        case Verdict.FAILS:
            return cell(name, verdict, some, evidence=EVIDENCE, witness=f"witnesses/{name}.json")
        case Verdict.UNKNOWN:
            return cell(name, verdict, some, reason="the guest was lost (hung) in 4 of 12 workloads")
        case Verdict.SKIPPED:
            return cell(name, verdict, NOTHING, workloads=0, reason="the guest's kernel has no such file system")
    return cell(name, Verdict.HOLDS, some)


def configuration(name: str = "ext4-ordered") -> SubjectResult:
    """All thirteen cells, one of each kind at least."""
    some = States(812, 4096, 2**88, None, 203, 700)
    all_whole = States(2**58, 212, 2**61, "writes", 900, 212, 9)
    cells = {
        "single-sector-overwrite": cell(
            "single-sector-overwrite", Verdict.HOLDS, States(64, 16, 64, "sectors", 64, 16)
        ),
        "single-sector-append": cell("single-sector-append", Verdict.HOLDS, all_whole),
        "single-block-overwrite": cell(
            "single-block-overwrite",
            Verdict.FAILS,
            some,
            evidence=EVIDENCE,
            witness="witnesses/single-block-overwrite.json",
        ),
        "append-any": cell(
            "append-any",
            Verdict.FAILS,
            some,
            evidence="operation 3 (mkdir /d) is there, operation 2 (append /a) is not",
            witness="witnesses/append-any.json",
        ),
        "multi-block-append": cell(
            "multi-block-append", Verdict.UNKNOWN, some, reason="the guest was lost (hung) in 4 of 12 workloads"
        ),
        "trunc-append-any": cell(
            "trunc-append-any", Verdict.SKIPPED, NOTHING, workloads=0, reason="the file system has no truncation"
        ),
    }
    held = cell("directory-op", Verdict.HOLDS, some)
    return SubjectResult(
        name=name,
        fs=name.partition("-")[0],
        mkfs_options="",
        mount_options="data=ordered",
        effective_mount_options="rw,relatime,data=ordered",
        # Last first, since the table has an order of its own.
        answers=tuple(cells.get(name) or named(held, name, family=_family(name)) for name in reversed(_names())),
        beside=(unmountable(3, "witnesses/unmountable.json", KERNEL_SAYS),),
        notes=("4,096-byte blocks, as mkfs.ext4 makes them on a disk of ordinary size",),
    )


def result(*names: str) -> Result:
    """A run over these configurations."""
    return Result(
        run=Run("20261121T230021-1f2e3d", "2026-11-21T23:00:21+00:00", "2026-11-21T23:04:33+00:00", "0.1.0", 1, 200),
        environment=Environment(
            kernel="6.1.0-31-amd64",
            image="debian-bookworm (3e1f3b33fc595478)",
            accelerator="tcg",
            clock="virtual",
            qemu="7.2.0",
            libvirt="9.0.0",
            mkfs_version="e2fsprogs 1.47.0-2+b2",
        ),
        device_model=DeviceModelDocument.of(DeviceModel()),
        subjects=tuple(map(configuration, names or ("ext4-ordered",))),
    )


def finer(rows: RowSet, *names: str) -> Result:
    """A run over all of these rows: every fifth fails with one of two finishes, the first one is unknown."""
    properties = [probe.property for probe in probes_of(rows)]
    some = States(812, 4096, 2**88, None, 203, 700)
    cells = []
    for place, prop in enumerate(properties):
        verdict = Verdict.UNKNOWN if not place else Verdict.HOLDS if place % 5 else Verdict.FAILS
        asked = (
            ByRecording("alone", "natural", verdict, some, 7 * (verdict is Verdict.FAILS)),
            ByRecording("alone", "natural 2.5", Verdict.HOLDS, some),
        )
        is_broken, is_unknown = verdict is Verdict.FAILS, verdict is Verdict.UNKNOWN
        cells.append(
            answer(
                claim_words(prop),
                verdict,
                some,
                asked,
                EVIDENCE if is_broken else None,
                f"witnesses/{prop.name}.json" if is_broken else None,
                "the guest was lost" if is_unknown else None,
            )
        )
    return replace(
        result(),
        subjects=tuple(replace(configuration(name), answers=tuple(cells)) for name in names or ("ext4-ordered",)),
    )


def _names() -> list[str]:
    return [name for names in FAMILIES.values() for name in names]


def _family(name: str) -> str:
    return next(family for family, names in FAMILIES.items() if name in names)
