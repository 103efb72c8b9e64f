"""Subjects: what bob crashes, as data. A subject has disks, layers (such as RAID) on the disks, and a file system with
its options."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bob.errors import UsageError
from bob.schema import Document, adapt
from bob.subject.file_system import MIB, FileSystem, declared_by, file_system, file_systems
from bob.subject.layer import SECTOR_BYTES, Layer, stack, stack_for, stack_words

DEFAULT_BUDGET = 100  # mounts per workload: a column takes a few minutes on two processors without KVM
DEFAULT_AUDIT = 0.01  # share of its predictions that bob checks by mounts


@dataclass(frozen=True, slots=True)
class Subject:
    """A file system with its options, and the disks under it. If the subject has ``layers`` (from the bottom up), the
    file system is on the topmost layer. Otherwise it is on the disk. ``sizes`` are the sizes of the disks in bytes; if
    ``sizes`` is empty, there is one disk of the default size. The disks with the numbers ``missing`` failed before the
    operations. The disks with the numbers ``lost`` fail together with the crash.

    The subject of a cluster has ``nodes``, the subjects of its members. Each has one disk, without layers."""

    name: str
    fs: FileSystem
    mkfs_options: str = ""
    mount_options: str = ""
    sizes: tuple[int, ...] = ()
    layers: tuple[Layer, ...] = ()
    missing: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    nodes: tuple[Subject, ...] = ()

    def __post_init__(self) -> None:
        if min(self.disks) <= 0:
            raise ValueError(f"{self.name} has disks of {self.disks!r} bytes")
        for place, layer in enumerate(self.layers, len(self.disks)):
            if not layer.below or not all(0 <= number < place for number in layer.below):
                raise ValueError(f"{self.name}: the layer {layer.name} is over devices {layer.below!r}")
        gone = {*self.missing, *self.lost}
        if gone and (not self.layers or not gone < set(range(len(self.disks)))):
            raise ValueError(f"{self.name} loses the disks {sorted(gone)!r} of {len(self.disks)}")
        if self.nodes and (self.layers or tuple(node.device_bytes for node in self.nodes) != self.sizes):
            raise ValueError(f"{self.name} has {len(self.nodes)} nodes, and disks of {self.sizes!r} bytes")

    @property
    def disks(self) -> tuple[int, ...]:
        """The size of each disk in bytes."""
        return self.sizes or (self.fs.device,)

    @property
    def device_bytes(self) -> int:
        return sum(self.disks)

    @property
    def volume_bytes(self) -> int:
        """The size in bytes of the device that the file system is on."""
        return self.layers[-1].sectors * SECTOR_BYTES if self.layers else self.device_bytes

    @property
    def modules(self) -> tuple[str, ...]:
        """The kernel modules that the file system and the layers need."""
        within = [name for layer in self.layers for name in layer.modules]
        within += [name for node in self.nodes for name in (*node.modules, "veth", "bridge")]
        return tuple(dict.fromkeys((self.fs.module, *within)))

    @property
    def packages(self) -> tuple[str, ...]:
        within = [name for layer in self.layers for name in layer.packages]
        within += [name for node in self.nodes for name in node.packages]
        return tuple(dict.fromkeys((self.fs.package, *within)))

    @property
    def stack(self) -> str:
        """The layers, and the disks that fail, in words; empty without layers."""
        on = f"on {', '.join(stack_words(len(self.disks), self.layers))}" if self.layers else ""
        return on + _disks(" without", self.missing) + _disks(", losing", self.lost)

    @property
    def is_one_disk(self) -> bool:
        """Whether one file system is on one disk, without layers."""
        return not self.layers and not self.nodes

    @property
    def forgets(self) -> bool:
        """Whether a block is the same after recovery, no matter whether the disk had its old or its new content before.
        The value is False for a subject with layers or nodes, since bob does not know where its log is."""
        return self.fs.forgets and self.is_one_disk

    @property
    def mkfs(self) -> tuple[str, ...]:
        """The whole mkfs command. The user's mkfs options come after bob's own options, so the user's options win."""
        return (*self.fs.mkfs[:-1], *shlex.split(self.mkfs_options), self.fs.mkfs[-1])

    @property
    def options(self) -> frozenset[str]:
        """The user's mount options as single words. If the user gave none, they are the kernel's default options."""
        return frozenset(filter(None, (self.mount_options or self.fs.default_options).split(",")))

    @property
    def note(self) -> str:
        words = shlex.split(self.mkfs_options)
        sizes = [size for word, size in itertools.pairwise(words) if word == "-b"]
        if sizes and sizes[-1].removeprefix("size=").lower() not in ("4096", "4k"):
            return f"its blocks are of {sizes[-1]} bytes; what the rows of the table call a block has 4,096"
        return self.fs.note


def configuration(
    fs: str | FileSystem,
    mkfs_options: str = "",
    mount_options: str = "",
    device: int = 0,
    name: str = "",
    disks: tuple[int, ...] = (),
    layers: tuple[Layer, ...] = (),
    *,
    on: str = "",
    missing: tuple[int, ...] = (),
    lost: tuple[int, ...] = (),
) -> Subject:
    """Return the subject with the file system ``fs``, which may be a name or the path of a declaration
    (:func:`file_system`). If ``name`` is empty, the subject gets the name that the literature uses for these mount
    options. If there is no such name, bob makes the name from the file system, the options and the layers.

    ``device`` and ``disks`` are sizes in bytes; if ``disks`` are given, they replace ``device``. ``on`` has the names
    of layers (:func:`stack`). The disks below these layers have the size ``device``. If ``device`` is 0, they have a
    size that gives the file system a device of its usual size. The disks with the numbers ``missing`` failed before the
    operations, and the disks with the numbers ``lost`` fail with the crash.

    Raise UsageError if ``fs`` or a layer is unknown, if bob cannot split the options into words, or if a disk in
    ``missing`` or ``lost`` does not exist."""
    known = fs if isinstance(fs, FileSystem) else file_system(fs)
    if device and device % MIB:
        raise UsageError(f"a device of {device} bytes is not a whole number of MiB", hint="for example --device 64M")
    try:
        shlex.split(mkfs_options)
    except ValueError as error:
        raise UsageError(f"mkfs options {mkfs_options!r}: {error}", hint="bob splits them as a shell does") from None
    if on:
        disks, layers = stack(on, device) if device else stack_for(on, known.device)
    _check_order(known, layers)
    if not name and not mkfs_options and not layers:
        name = dict(known.names).get(mount_options, "")
    missing, lost = tuple(sorted(set(missing))), tuple(sorted({*lost} - {*missing}))
    _check_lost((*missing, *lost), len(disks) if layers else 0)
    sizes = disks or ((device,) if device else ())
    made = Subject(name, known, mkfs_options, mount_options, sizes, layers, missing, lost)
    parts = known.name, mkfs_options, mount_options, made.stack
    return made if name else replace(made, name=" ".join(part for part in parts if part))


def cluster_of(nodes: Sequence[Subject]) -> Subject:
    """Return the subject of a cluster whose members have the subjects ``nodes``."""
    first, names = nodes[0], list(dict.fromkeys(node.name for node in nodes))
    name = f"{len(nodes)} x {names[0]}" if len(names) == 1 else ", ".join(node.name for node in nodes)
    sizes = tuple(node.device_bytes for node in nodes)
    return Subject(name, first.fs, first.mkfs_options, first.mount_options, sizes, nodes=tuple(nodes))


def _disks(what: str, numbers: tuple[int, ...]) -> str:
    return f"{what} {', '.join(f'disk {number}' for number in numbers)}" if numbers else ""


def _check_order(fs: FileSystem, layers: tuple[Layer, ...]) -> None:
    """Raise UsageError if a layer hands several devices to a file system, but is not below the file system ``fs``."""
    for layer in layers:
        if layer.fs and layer is not layers[-1]:
            hint = f"it has to be the first in --stack: it hands its devices to {layer.fs}"
            raise UsageError(f"the layer {layer.name} cannot be below the layer {layers[-1].name}", hint=hint)
        if layer.fs not in ("", fs.name):
            raise UsageError(f"the layer {layer.name} is for {layer.fs}, not for {fs.name}", hint=f"--fs {layer.fs}")


def _check_lost(lost: tuple[int, ...], disks: int) -> None:
    """Raise UsageError unless the disks with the numbers ``lost`` exist, and at least one other disk stays. ``disks``
    is the number of all disks below layers. It is 0 if the subject has no layers, and then no disk may be lost."""
    if lost and not disks:
        raise UsageError("only a disk below layers can be lost", hint="name the layers with --stack")
    if lost and max(lost) >= disks:
        hint = f"this stack has the disks 0 to {disks - 1}"
        raise UsageError(f"there is no disk {max(lost)} to lose", hint=hint)
    if lost and len(lost) == disks:
        raise UsageError(f"all {disks} disks of this stack would be lost", hint="one has to stay")


class NodeConfigurationDocument(Document, frozen=True, kw_only=True):
    """The subject of a cluster's member as a document (JSON): a file system on one disk. ``declaration`` is the text of
    the user's file that declares the file system. ``device`` is the size of the disk (0: the file system's default)."""

    name: str
    fs: str
    mkfs_options: str
    mount_options: str
    device: int
    declaration: str | None = None

    @classmethod
    def of_node(cls, made: Subject) -> NodeConfigurationDocument:
        return adapt(
            NodeConfigurationDocument,
            made,
            fs=made.fs.name,
            declaration=made.fs.declaration or None,
            device=sum(made.sizes),
        )

    @property
    def file_system(self) -> FileSystem:
        """The file system. Raise UsageError if this version of bob does not know it."""
        fs = file_systems().get(self.fs) if self.declaration is None else declared_by(self.fs, self.declaration)
        if fs is None:
            hint = "another version of bob may have it"
            raise UsageError(f"this version of bob does not know the file system {self.fs!r}", hint=hint)
        return fs

    @property
    def node(self) -> Subject:
        """The subject that the document describes. Raise the errors of :attr:`file_system`."""
        return configuration(self.file_system, self.mkfs_options, self.mount_options, self.device, self.name)


class ConfigurationDocument(NodeConfigurationDocument, frozen=True, kw_only=True):
    """A subject as a document (JSON). If it has several disks, ``disks`` has their sizes, and ``device`` is 0. The
    disks ``missing`` failed before the operations, and the disks ``lost`` fail with the crash. ``nodes`` are the
    members of a cluster."""

    disks: tuple[int, ...] = ()
    layers: tuple[Layer, ...] = ()
    missing: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    nodes: tuple[NodeConfigurationDocument, ...] = ()

    @classmethod
    def of(cls, made: Subject) -> ConfigurationDocument:
        device, disks = (sum(made.sizes), ()) if len(made.sizes) < 2 else (0, made.sizes)
        own = NodeConfigurationDocument.of_node(made)
        nodes = tuple(map(NodeConfigurationDocument.of_node, made.nodes))
        return adapt(cls, made, fs=own.fs, declaration=own.declaration, device=device, disks=disks, nodes=nodes)

    @property
    def configuration(self) -> Subject:
        """The subject that the document describes. Raise UsageError if this version of bob does not know its file
        system."""
        if self.nodes:
            return cluster_of([node.node for node in self.nodes])
        options = self.mkfs_options, self.mount_options
        return configuration(
            self.file_system,
            *options,
            self.device,
            self.name,
            self.disks,
            self.layers,
            missing=self.missing,
            lost=self.lost,
        )
