"""A wrapper of libvirt that keeps libvirt silent, runs its event loop, and raises errors that name a missing
package."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

# libvirt reads this variable on import. Without it, the driver inside this process logs to bob's standard error.
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


@dataclass(frozen=True, slots=True)
class Versions:
    qemu: str
    libvirt: str


def connect(uri: str) -> tuple[Any, Versions]:
    """Return a connection (``virConnect``) to the libvirt at ``uri``, which must be on this machine. Also return the
    versions of QEMU and libvirt. Raises UsageError, MissingProgramError or GuestError."""
    host = urlsplit(uri).hostname
    if host not in (None, "localhost"):
        # QEMU must be able to open the files of images, saved states and consoles, as bob does.
        raise UsageError(f"guests must run on this machine, and {uri} is on another one", hint=f"run bob on {host}")
    _start_event_loop()
    with _on_one_cpu():
        try:
            connection = _inside(uri) if _is_inside(uri) else libvirt.open(uri)
            # Asking for QEMU's version makes libvirt look for QEMU.
            return connection, Versions(_version(connection.getVersion()), _version(connection.getLibVersion()))
        except LibvirtError as error:
            raise _explain(uri, str(error)) from error


def why_no_guest(connection: Any) -> str | None:
    """Return why QEMU does not start on this machine. Return None if it does: a guest of 64 MiB without a kernel starts
    for a moment, and executes nothing."""
    identity = uuid4()
    domain = f"""<domain type='qemu'>
      <name>bob-{identity.hex[:8]}</name><uuid>{identity}</uuid><memory unit='MiB'>64</memory>
      <vcpu cpuset='{min(os.sched_getaffinity(0))}'>1</vcpu><os><type arch='x86_64' machine='pc'>hvm</type></os>
      <devices><controller type='usb' model='none'/><memballoon model='none'/></devices></domain>"""
    try:
        connection.createXML(domain, libvirt.VIR_DOMAIN_START_PAUSED).destroy()
    except LibvirtError as error:
        return " ".join(str(error).split())
    return None


def open_any(uri: str | None) -> Any:
    """Return a connection (``virConnect``) to the libvirt at ``uri``, on any machine. None means virsh's default:
    LIBVIRT_DEFAULT_URI, or else the system's libvirt for root, and the session's libvirt for other users. Raises
    GuestError."""
    _start_event_loop()
    try:
        return _inside(uri) if uri is not None and _is_inside(uri) else libvirt.open(uri)
    except LibvirtError as error:
        hint = "--connect URI selects another libvirt, such as qemu:///system"
        raise GuestError(f"cannot connect to {uri or 'libvirt'}: {error}", hint=hint) from error


def disconnect(connection: Any, uri: str) -> None:
    """Close a connection of :func:`connect` or :func:`open_any`. If ``uri`` names the libvirt driver that runs inside
    bob's process, the connection stays open for later use."""
    if not _is_inside(uri):
        with suppress(LibvirtError):
            connection.close()


def _is_inside(uri: str) -> bool:
    return urlsplit(uri).path == "/embed"


@cache
def _inside(uri: str) -> Any:
    """Return the connection to the libvirt driver that runs inside bob's process. All callers share one connection:
    each further call of libvirt.open would register the driver again, and libvirt allows a dozen drivers
    (VIR_MAX_DRIVERS in src/libvirt.c)."""
    return libvirt.open(uri)


@contextmanager
def _on_one_cpu() -> Iterator[None]:
    """Keep this thread on one processor while libvirt probes QEMU, so that libvirt finds its cached answer again (a
    probe takes 8 s where KVM is broken). The cache of libvirt 9.0 depends on CPUID, which differs between the
    processors of some virtual machines."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def monitor(domain: Any, command: str) -> str:
    return str(libvirt_qemu.qemuMonitorCommand(domain, command, libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP))


@cache
def _start_event_loop() -> None:
    """Start libvirt's event loop once, before the first connection (facts.md, "Guests")."""
    libvirt.registerErrorHandler(lambda *_: None, None)  # libvirt raises its errors, and would also print them
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
