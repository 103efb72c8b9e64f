"""Results made up for tests: every kind of cell, and numbers from small to beyond 2^53."""

from __future__ import annotations

from dataclasses import replace

from bob.report.rows import FAMILIES
from bob.result import (
    ConfigurationResult,
    Environment,
    PropertyResult,
    Result,
    Run,
    States,
    Unmountable,
    Verdict,
    WorkloadResult,
)

EVIDENCE = (
    "operation 2 (overwrite /a at 0, 4096 bytes) is partial: sectors 0-3 have its data, sectors 4-7 have that of "
    "operation 0, after write 17 was torn"
)
KERNEL_SAYS = "EXT4-fs (loop0): VFS: Found ext4 filesystem with invalid superblock checksum.  Run e2fsck?"


def cell(name: str, verdict: Verdict, states: States, workloads: int = 12, **more: str | None) -> PropertyResult:
    """A cell in which every third workload gave the verdict (for HOLDS, each of them)."""
    family = next(family for family, names in FAMILIES.items() if name in names)
    asked = tuple(
        WorkloadResult(
            name=f"workload {place}",
            finish="natural",
            verdict=verdict if place % 3 == 0 else Verdict.HOLDS,
            states=states,
            violations=7 if verdict is Verdict.FAILS and place % 3 == 0 else 0,
        )
        for place in range(workloads)
    )
    return PropertyResult(name, family, verdict, states, asked, **more)


def configuration(name: str = "ext4-ordered") -> ConfigurationResult:
    """All thirteen cells, one of each kind at least."""
    some, all_whole = States(812, 4096, 2**88, None, 203), States(2400, 212, 2**61, "writes", 900)
    cells = {
        "single-sector-overwrite": cell("single-sector-overwrite", Verdict.HOLDS, States(64, 16, 64, "sectors", 64)),
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
            "trunc-append-any", Verdict.SKIPPED, States(), workloads=0, reason="the file system has no truncation"
        ),
    }
    names = [name for names in FAMILIES.values() for name in names]
    held = cell("directory-op", Verdict.HOLDS, some)
    return ConfigurationResult(
        name=name,
        fs="ext4",
        mkfs_options="",
        mount_options="data=ordered",
        effective_mount_options="rw,relatime,data=ordered",
        # Last first, since the table has an order of its own.
        properties=tuple(cells.get(name) or replace(held, name=name, family=_family(name)) for name in reversed(names)),
        unmountable=Unmountable(3, "witnesses/unmountable.json", KERNEL_SAYS),
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
        write_cache="volatile",
        atomic_write_bytes=512,
        configurations=tuple(map(configuration, names or ("ext4-ordered",))),
    )


def _family(name: str) -> str:
    return next(family for family, names in FAMILIES.items() if name in names)
