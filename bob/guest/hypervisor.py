"""A libvirt connection that starts guests. Each guest is restored from a saved state, or booted."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from bob.errors import BobError, GuestError
from bob.guest.accelerator import KVM_DEADLINE, Acceleration, choose, host
from bob.guest.domain_xml import Identity, domain_xml
from bob.guest.driver import RESTORE_RUNNING, LibvirtError, Versions, connect, disconnect
from bob.guest.machine import Console, Guest
from bob.guest.network import choose_network, network
from bob.guest.root import Reaper, Root
from bob.guest.saved_guest import BadState, SavedState
from bob.guest.spec import MEMORY_MIB, Accelerator, Clock, GuestSpec, NetworkKind

BOOT_DEADLINE = 300.0  # seconds for a boot, which takes 5 s alone under TCG, and many times that on a busy host

_READY = "bob: ready"

# A command that runs before a guest is saved, so that the saved page cache holds what SSH and the agent need.
_WARM_UP = "python3 -S -c 'import ctypes, hashlib, json, mmap, struct, zipimport, zlib'"


@dataclass(eq=False)
class Hypervisor:
    """A libvirt connection that starts guests.

    Usage: ``with Hypervisor.open() as hv, hv.guest(GuestSpec(image)) as guest:``. At the end of the block, bob ends the
    guest. If bob's process ends earlier, another process, the reaper, ends the guest."""

    _connection: Any
    versions: Versions
    _uri: str | None
    _network: NetworkKind
    _progress: Callable[[str], None]
    memory_mib: int = MEMORY_MIB
    _real_choice: Acceleration | None = None

    @classmethod
    @contextmanager
    def open(
        cls,
        uri: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
        *,
        network: NetworkKind | None = None,
        memory_mib: int = MEMORY_MIB,
    ) -> Iterator[Self]:
        """Connect to bob's own libvirt in this process, or to the libvirt at ``uri`` on this machine. ``progress`` is
        called with a message before each slow step. Agents get guests with ``memory_mib`` MiB of memory. ``network`` is
        the kind of network for guests. By default (None), guests use private networks if they run in bob's own libvirt
        and bob can make such networks. Otherwise they use QEMU's user network. Raises UsageError, MissingProgramError
        or GuestError."""
        if network is None:
            network = choose_network().kind if uri is None else NetworkKind.USER
        there = Root.shared().uri if uri is None else uri
        connection, versions = connect(there)
        try:
            yield cls(connection, versions, uri, network, progress, memory_mib)
        finally:
            disconnect(connection, there)

    def choice(self, spec: GuestSpec) -> Acceleration:
        """Return the accelerator (KVM or TCG) for the guest ``spec``, and the reason for this choice. To find out
        whether KVM works, this may boot a guest. bob remembers the result on this machine."""
        if spec.clock is Clock.VIRTUAL:
            return Acceleration(Accelerator.TCG, "virtual time needs emulation")
        if spec.accelerator is not None:
            return Acceleration(spec.accelerator, "the caller asked for it")
        if self._real_choice is None:
            self._real_choice = choose(
                f"QEMU {self.versions.qemu}, libvirt {self.versions.libvirt}", lambda: self._boots_under_kvm(spec)
            )
        return self._real_choice

    @contextmanager
    def guest(self, spec: GuestSpec, *, restore: bool = True) -> Iterator[Guest]:
        """Yield a guest that answers by SSH. It is restored from a saved state, or booted if ``restore`` is false.
        Raises GuestLost or GuestError."""
        with ExitStack() as stack:
            yield self._restored(spec, stack) if restore else self._booted(spec, _someone(), stack)

    def _restored(self, spec: GuestSpec, stack: ExitStack) -> Guest:
        state = self._state(spec)
        for _attempt in range(2):
            if not self._save(spec, state):
                break
            with ExitStack() as attempt:
                try:
                    guest = self._restore(spec, state, attempt)
                except (LibvirtError, BadState, BobError, OSError) as error:
                    self._progress(f"removing a saved guest that cannot be restored ({error})")
                    state.path.unlink(missing_ok=True)
                    continue
                stack.enter_context(attempt.pop_all())
                return guest
        return self._booted(spec, _someone(), stack)

    def _save(self, spec: GuestSpec, state: SavedState) -> bool:
        if state.exists():
            return True
        with state.locked(BOOT_DEADLINE) as mine, ExitStack() as stack:
            if state.exists() or not mine:  # another bob has saved the state first, or is still busy with it
                return state.exists()
            self._progress("booting a guest, to save it when it is ready")
            guest = self._booted(spec, state.identity, stack)
            guest.shell.run(_WARM_UP, timeout=BOOT_DEADLINE)
            try:
                guest.save(state.part)
                state.commit()
            except (LibvirtError, OSError) as error:
                self._progress(f"cannot save the guest ({error})")
                return False
        return True

    def _restore(self, spec: GuestSpec, state: SavedState, stack: ExitStack) -> Guest:
        identity = _someone()
        copy = Root.shared().path / f"{identity.name}.state"
        try:
            state.copy_for(identity, copy)
            guest = self._launch(
                spec, identity, stack, lambda xml: self._connection.restoreFlags(str(copy), xml, RESTORE_RUNNING)
            )
        finally:
            copy.unlink(missing_ok=True)
        _ = guest.shell  # it answers
        return guest

    def _booted(self, spec: GuestSpec, identity: Identity, stack: ExitStack) -> Guest:
        guest = self._boot(spec, identity, stack)
        if not guest.console.wait_for(_READY, BOOT_DEADLINE, lambda: guest.running):
            raise guest.lost(not guest.running, f"it was not ready within {BOOT_DEADLINE:.0f} s")
        _ = guest.shell  # it answers
        return guest

    def _boot(self, spec: GuestSpec, identity: Identity, stack: ExitStack) -> Guest:
        try:
            return self._launch(spec, identity, stack, lambda xml: self._connection.createXML(xml, 0))
        except LibvirtError as error:
            raise GuestError(
                f"libvirt cannot start a guest: {error}", hint=f"QEMU must be able to read {spec.image.root.parent}"
            ) from error

    def _launch(self, spec: GuestSpec, identity: Identity, stack: ExitStack, start: Callable[[str], object]) -> Guest:
        accelerator = self.choice(spec).accelerator
        console = Console(Root.shared().path / f"{identity.name}.console")
        if self._uri is not None:
            stack.enter_context(Reaper.shared().watch_domain(self._uri, str(identity.uuid)))
        try:
            reached_by = stack.enter_context(network(self._network))
        except OSError as error:
            raise GuestError(f"cannot make a network for the guest: {error.strerror}") from error
        port = Root.shared().path / f"{identity.name}.port" if self._uri is None else None
        xml = domain_xml(spec, accelerator, self._network, identity, console.path, port)
        reached_by.start(lambda: start(xml))
        domain = self._connection.lookupByUUIDString(str(identity.uuid))
        try:
            guest = Guest(spec, accelerator, reached_by, identity, console, domain, port)
        except BaseException:
            with suppress(LibvirtError):
                domain.destroy()
            raise
        stack.callback(guest.close)
        return guest

    def _state(self, spec: GuestSpec) -> SavedState:
        anyone = Identity(uuid.UUID(int=0))
        port = None if self._uri is not None else Path("port")
        definition = domain_xml(spec, self.choice(spec).accelerator, self._network, anyone, Path("console"), port)
        image = (spec.image.key, spec.image.built, spec.image.host_key)
        return SavedState.of(*image, definition, self.versions.qemu, self.versions.libvirt, *host())

    def _boots_under_kvm(self, spec: GuestSpec) -> bool:
        self._progress("testing whether a guest boots under KVM")
        with ExitStack() as stack, suppress(GuestError):
            guest = self._boot(replace(spec, accelerator=Accelerator.KVM), _someone(), stack)
            return guest.console.wait_for(_READY, KVM_DEADLINE, lambda: guest.running)
        return False


def _someone() -> Identity:
    return Identity(uuid.uuid4())
