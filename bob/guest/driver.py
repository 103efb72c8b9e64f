"""libvirt itself: quiet, with its event loop running, and with errors that name the missing package."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

# libvirt inside this process would write its log to our standard error; it reads this when it is imported.
os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null")

import libvirt  # type: ignore[import-untyped, unused-ignore]
import libvirt_qemu  # type: ignore[import-untyped]

from bob.errors import GuestError, MissingProgramError, UsageError

_QEMU = ("qemu-system-x86_64", "qemu-kvm", "kvm")

LibvirtError = libvirt.libvirtError
RESTORE_RUNNING: int = libvirt.VIR_DOMAIN_SAVE_RUNNING
RUNNING: int = libvirt.VIR_DOMAIN_RUNNING
ADDRESS_SOURCES: tuple[int, ...] = (
    libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
    libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT,
    libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP,
)
"""libvirt's sources of a domain's addresses."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The software that runs the guests: a part of the environment of a result."""

    qemu: str
    libvirt: str


def connect(uri: str) -> tuple[Any, Versions]:
    """Return a ``virConnect`` to ``uri``, and its versions. Raises UsageError, MissingProgramError or GuestError."""
    host = urlsplit(uri).hostname
    if host not in (None, "localhost"):
        # Images, saved states and consoles are files that bob and QEMU both open.
        raise UsageError(f"guests can only run on this machine, and {uri} is another", hint=f"run bob on {host}")
    _start_event_loop()
    with _on_one_cpu():
        try:
            connection = _inside(uri) if _is_inside(uri) else libvirt.open(uri)
            # Asking for QEMU's version makes libvirt look for QEMU, which it has not done before.
            return connection, Versions(_version(connection.getVersion()), _version(connection.getLibVersion()))
        except LibvirtError as error:
            raise _explain(uri, str(error)) from error


def open_any(uri: str | None) -> Any:
    """Return a ``virConnect`` to the libvirt at ``uri``, on any machine. Raises GuestError. None is the one that
    ``virsh`` takes: LIBVIRT_DEFAULT_URI, or the system's for root and the session's for others."""
    _start_event_loop()
    try:
        return _inside(uri) if uri is not None and _is_inside(uri) else libvirt.open(uri)
    except LibvirtError as error:
        hint = "--connect URI names another one, such as qemu:///system"
        raise GuestError(f"cannot connect to {uri or 'libvirt'}: {error}", hint=hint) from error


def disconnect(connection: Any, uri: str) -> None:
    """Close a connection that :func:`connect` made; the one to the driver inside this process stays."""
    if not _is_inside(uri):
        with suppress(LibvirtError):
            connection.close()


def _is_inside(uri: str) -> bool:
    return urlsplit(uri).path == "/embed"


@cache
def _inside(uri: str) -> Any:
    """Return the one connection to the driver inside this process. Each open registers that driver anew, and after a
    dozen libvirt says "Too many drivers" (VIR_MAX_DRIVERS in src/libvirt.c; nothing removes one)."""
    return libvirt.open(uri)


@contextmanager
def _on_one_cpu() -> Iterator[None]:
    """Keep this thread on the same processor each time, while libvirt looks around. libvirt keeps its findings about
    QEMU (8 s where KVM is broken) with a hash of CPUID. On some virtual machines CPUID differs by processor: there
    libvirt 9.0 says "host cpuid changed" and starts again."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def monitor(domain: Any, command: str) -> str:
    """Return QEMU's answer to a command of its human monitor."""
    return str(libvirt_qemu.qemuMonitorCommand(domain, command, libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP))


@cache
def _start_event_loop() -> None:
    """Start it once per process, before the first connection (facts.md, "Guests")."""
    libvirt.registerErrorHandler(lambda *_: None, None)  # errors are raised; libvirt prints them as well
    libvirt.virEventRegisterDefaultImpl()
    threading.Thread(target=_run_event_loop, name="libvirt events", daemon=True).start()


def _run_event_loop() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


def _version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def _explain(uri: str, reason: str) -> Exception:
    if "libvirt-qemu" in reason or "libvirt_driver_qemu" in reason or "no connection driver" in reason:
        return MissingProgramError("libvirt's QEMU driver is not installed", hint="apt install libvirt-daemon-system")
    if not any(shutil.which(name) for name in _QEMU):
        return MissingProgramError("QEMU is not installed", hint="apt install qemu-system-x86")
    return GuestError(f"cannot connect to {uri}: {reason}", hint="leave out --connect to use bob's own libvirt")
