"""Shipped probes as probes of one's own: then only the workloads of their own files are recorded, which takes less."""

from __future__ import annotations

from dataclasses import replace

from bob.catalogue.probe_files import Probe, shipped_probes


def own(*names: str) -> tuple[Probe, ...]:
    """The shipped probes of these names, each property called my-NAME."""
    return tuple(
        replace(probe, property=replace(probe.property, name=f"my-{probe.property.name}"))
        for probe in shipped_probes(names)
    )
