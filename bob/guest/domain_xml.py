"""The definition of a guest in XML for libvirt and QEMU, with the reason for each line."""

import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID
from xml.sax.saxutils import escape

from bob.agent.shared import PORT_NAME, WORLD_SERIAL
from bob.guest.network import TAP
from bob.guest.spec import Accelerator, Clock, GuestSpec, NetworkKind

#: Added to the image's command line. A kernel that oopsed is lost: it may hold locks, and its words on a file system
#: are worthless. With the image's panic=-1 it ends at once. The rest saves instructions: accounts of pressure and
#: memory by group (2 % of a crash state's), and a look at the clock twice a second. Addresses that differ by process
#: also cost: QEMU would translate all of e2fsck each time.
CMDLINE = "oops=panic psi=0 cgroup_disable=memory tsc=nowatchdog norandmaps"

#: MiB beside its memory for crash states (bob/agent/inside/ram_disk.py), enough for any file system's default size.
#: Larger devices, and all recorded ones, are files in a guest's memory under loop devices.
_SCRATCH_MIB = 304
_FIRMWARE_MIB = 16  # MiB at the end of the memory, for the firmware's tables
_HOLE_MIB = 3 * 1024  # MiB: QEMU's machine "pc" has memory without a hole up to this address

_DOMAIN = """\
<domain type='{type}' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <!-- Of fixed length, so that a saved guest can be given others in place (saved.py). -->
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>{memory_mib}</memory>
  <!-- One: icount runs one at a time, and with one hardware queue dm-log-writes keeps its order (facts, pitfall 9). -->
  <!-- On any of the host's: without a mask libvirt asks /sys for them, which a bare root does not have. -->
  <vcpu cpuset='{cpus}'>1</vcpu>
  <os>
    <!-- pc boots to "ready" in 11.7 s where q35 takes 12.4 s (icount: 13.7 s and 16.7 s). -->
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{initrd}</initrd>
    <cmdline>{cmdline}</cmdline>
  </os>
  <features><acpi/>{translated}</features>
  <cpu mode='{cpu}'/>
  {clock}
  <!-- A guest that panics or powers off is gone, and its connections with it: bob need not wait for a deadline. -->
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <!-- The image's root, the first virtio disk. Guests share it, so it is never written. -->{disks}
    <serial type='file'><source path='{console}'/></serial>
    <!-- builtin: QEMU's own generator, which -seed makes the same in every run. -->
    <rng model='virtio'><backend model='builtin'/></rng>
    <controller type='usb' model='none'/>{port}
    <memballoon model='none'/>
  </devices>
  <qemu:commandline>
    <!-- libvirt cannot attach a tap that is in another namespace than it looks in, and libvirt 9 can forward a port
         only with passt. -->
    <qemu:arg value='-netdev'/>
    <qemu:arg value='{netdev}'/>
    <!-- libvirt does not know of this card and counts its own up from slot 2. No ROM: no guest boots from it. -->
    <qemu:arg value='-device'/>
    <qemu:arg value='virtio-net-pci,netdev=bob,addr=0x10,romfile='/>{emulated_cpu}{virtual_time}
  </qemu:commandline>
</domain>
"""

_DISK = """
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe'/>
      <source file='{path}'/>
      <target dev='{device}' bus='virtio'/>
      <readonly/>{serial}
    </disk>"""

_MODULES = """
    <!-- The modules of a kernel that is not the image's own. -->"""

_WORLD = """
    <!-- The user space of a program under test. The agent finds it by its serial number. -->"""

_PORT = """
    <!-- By which bob talks to its agent: port.py. -->
    <channel type='unix'><source mode='bind' path='{path}'/><target type='virtio' name='{name}'/></channel>"""

_REAL_CLOCK = "<clock offset='utc'/>"

# The real-time clock starts on 2026-01-01 in every recording and follows the guest's time.
_VIRTUAL_CLOCK = "<clock offset='absolute' start='1767225600'><timer name='rtc' track='guest'/></clock>"

_VIRTUAL_TIME = """
    <!-- One instruction is 2 ns; idle time is skipped. The seed is for the random device and RDRAND. -->
    <qemu:arg value='-icount'/>
    <qemu:arg value='shift=1,sleep=off'/>
    <qemu:arg value='-seed'/>
    <qemu:arg value='1'/>"""


_TRANSLATED = """
    <!-- Room (by default 1 GiB) for what a guest needs again and again, and not for what it needed to start, which is
         as much: when it is full, all is thrown away, and what is translated anew lies side by side. -->
    <tcg><tb-cache unit='MiB'>64</tb-cache></tcg>"""

_EMULATED_CPU = """
    <!-- With "enhanced rep movsb" kernel and libc copy byte by byte, which is dear under TCG. The "fast short" one goes
         with it: newer QEMUs have both, and with it alone memmove of Linux up to 6.1 writes beyond what it should, and
         the guest hangs. libvirt would make of "maximum" with a feature less another model; of two -cpu, QEMU takes the
         second. -->
    <qemu:arg value='-cpu'/>
    <qemu:arg value='max,erms=off,fsrm=off'/>"""


_NETDEV = {
    NetworkKind.PRIVATE: f"tap,id=bob,ifname={TAP},script=no,downscript=no",
    # "restrict" lets nothing out of the network. With port 0, QEMU takes a free port, which its monitor then reports.
    # So two restored guests do not clash.
    NetworkKind.USER: "user,id=bob,restrict=on,ipv6=off,hostfwd=tcp:127.0.0.1:0-:22",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """A guest's identity on its host: its UUID, and the name that follows from it. Two guests that are restored from
    one saved state differ only in their identities."""

    uuid: UUID

    @property
    def name(self) -> str:
        """The name of the libvirt domain: 12 characters, because libvirt puts it into paths of sockets, which may have
        108 bytes."""
        return f"bob-{self.uuid.hex[:8]}"


def domain_xml(
    spec: GuestSpec,
    accelerator: Accelerator,
    network: NetworkKind,
    identity: Identity,
    console: Path,
    port: Path | None = None,
) -> str:
    """Return the XML of the libvirt domain for the guest ``spec``. QEMU appends the output of the guest's console to
    the file ``console``. ``port`` is the path of a socket on the host. The socket leads to a virtio-serial device in
    the guest (port.py). Through it, bob talks to its agent (bob's program in the guest)."""
    virtual = spec.clock is Clock.VIRTUAL
    more_mib, set_aside = (0, "") if virtual else _scratch(spec.memory_mib)
    texts = {
        "type": "kvm" if accelerator is Accelerator.KVM else "qemu",
        "name": identity.name,
        "uuid": str(identity.uuid),
        "memory_mib": str(spec.memory_mib + more_mib),
        "cpus": f"0-{(os.cpu_count() or 1) - 1}",
        "kernel": str(spec.image.kernel),
        "initrd": str(spec.image.initrd),
        "cmdline": f"{spec.image.cmdline} {CMDLINE}{set_aside}",
        "cpu": "host-passthrough" if accelerator is Accelerator.KVM else "maximum",
        "console": str(console),
        "netdev": _NETDEV[network],
    }
    disks = _disk(spec.image.root, "vda")
    if (modules := spec.image.modules_disk) is not None:
        disks += _MODULES + _disk(modules, "vdb")
    if spec.world is not None:
        disks += _WORLD + _disk(spec.world, "vdc", f"\n      <serial>{WORLD_SERIAL}</serial>")
    return _DOMAIN.format(
        **{key: _escaped(text) for key, text in texts.items()},
        disks=disks,
        port="" if port is None else _PORT.format(path=_escaped(str(port)), name=PORT_NAME),
        clock=_VIRTUAL_CLOCK if virtual else _REAL_CLOCK,
        translated="" if accelerator is Accelerator.KVM else _TRANSLATED,
        emulated_cpu="" if accelerator is Accelerator.KVM else _EMULATED_CPU,
        virtual_time=_VIRTUAL_TIME if virtual else "",
    )


def _disk(path: Path, device: str, serial: str = "") -> str:
    return _DISK.format(path=_escaped(str(path)), device=device, serial=serial)


def _scratch(memory_mib: int) -> tuple[int, str]:
    """Return two values: how much memory (MiB) to add for the disks that hold crash states, and parameters for the
    kernel. The parameters reserve this memory for the driver of these disks, and let the agent (bob's program in the
    guest) map it."""
    more_mib = _SCRATCH_MIB + _FIRMWARE_MIB
    if memory_mib + more_mib > _HOLE_MIB:
        return 0, ""
    return more_mib, f" memmap={_SCRATCH_MIB}M!{memory_mib}M iomem=relaxed"


def _escaped(text: str) -> str:
    return escape(text, {"'": "&apos;"})
