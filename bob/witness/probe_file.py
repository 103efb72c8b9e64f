"""Write the property and the workload of a witness as a probe file, for ``bob probe --probe`` (docs/extend.md). A
*witness* is a file about one crash state that breaks a property. A *probe file* declares a property and workloads that
test it."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bob.catalogue.probe_files import parsed
from bob.catalogue.request import DEFAULT_IMAGE, DEFAULT_MODEL
from bob.claim.property.declaration import PropertyDocument
from bob.claim.property.of_property import OfProperty
from bob.errors import UsageError
from bob.schema import encode
from bob.subject import Subject, layers
from bob.subject.layer import stack_words
from bob.witness.document import Witness
from bob.workload.language import write_one
from bob.workload.operations import At, Finish, Operation, Workload
from bob.workload.pattern import PATTERN

PREFIX = "found-"  # the names of properties from witnesses begin with this word, those of shipped properties do not


def to_probe(witness: Witness) -> str:
    """Return a probe file (TOML) with the workload of ``witness`` and the property that the witness breaks. The
    operations write the test data that bob uses now, even if the witness was made with the test data of an older bob.
    Raises UsageError if the claim is not a property, the property is unknown, or a probe file cannot express the
    workload."""
    claim = witness.claim
    if not isinstance(claim, OfProperty):
        raise UsageError(
            f"a probe file needs a property, and this witness shows {claim.title}",
            hint="bob witness show explains the witness, bob replay shows it again",
        )
    name = (PREFIX + re.sub("[^A-Za-z0-9_-]+", "-", claim.name))[:80].rstrip("-")
    prop = replace(claim.resolved, name=name)
    workload = replace(claim.asking(witness.workload), pattern=PATTERN)
    text = "\n".join([*_told(witness), *_property(encode(PropertyDocument.of(prop))), "", *_workload(workload), ""])
    probe = parsed("the probe file", text)
    asked = replace(workload, finish=replace(workload.finish, name=_finish(workload.finish)))
    if (probe.property, probe.workloads) != (prop, (asked,)):
        raise UsageError(
            "a probe file cannot express this workload: bob would read another one",
            hint="in a probe file {1..3} stands for several names",
        )
    return text


def options(witness: Witness) -> list[str]:
    """Return the options that make `bob probe` use the configuration of ``witness``. If the user declared the file
    system or a layer below it (such as RAID) in a TOML file, the options name this file as ``./NAME.toml``."""
    made, model, default = witness.configuration, witness.model, DEFAULT_MODEL
    fs = f"./{made.fs.name}.toml" if made.fs.declaration else made.fs.name
    image = witness.environment.get("image", DEFAULT_IMAGE).partition(" ")[0]
    every = [
        ("--fs", fs, ""),
        ("--mkfs-opts", made.mkfs_options, ""),
        ("--mount-opts", made.mount_options, ""),
        ("--stack", ",".join(_layer_words(made)), ""),
        ("--image", image, DEFAULT_IMAGE),
        ("--write-cache", model.write_cache.name, default.write_cache.name),
        ("--atomic-write", str(model.atomic_write_bytes), str(default.atomic_write_bytes)),
        ("--completion", model.completion.value, default.completion.value),
    ]
    every += [("--without-disk", str(number), "") for number in made.missing]
    every += [("--lose-disk", str(number), "") for number in made.lost]
    return [word for option, value, usual in every if value != usual for word in (option, value)]


def _layer_words(made: Subject) -> list[str]:
    return [name if name in layers() else f"./{name}.toml" for name in stack_words(len(made.disks), made.layers)]


def _told(witness: Witness) -> Iterator[str]:
    made = witness.configuration
    yield f"# {_line(f'{witness.title} on {made.name}, Linux {witness.kernel}')}"
    yield f"# {_line(witness.evidence)}"
    yield f"# {_line('Ask it again: ' + shlex.join(['bob', 'probe', *options(witness), '--probe', 'FILE']))}"


def _property(declared: dict[str, Any]) -> Iterator[str]:
    for key in ("name", "family", "meaning"):
        yield f"{key} = {_value(declared[key])}"
    yield from ("", "[judge]")
    for key, value in declared["judge"].items():
        if value not in ((), False):
            yield f"{key} = {_value(value)}"


def _workload(workload: Workload) -> Iterator[str]:
    yield "[[workloads]]"
    yield f"name = {_value(workload.name)}"
    for key, operations in (("setup", workload.setup), ("operations", workload.operations)):
        yield from _listed(key, operations)
    yield f"finish = [{_value(_finish(workload.finish))}]"
    if workload.at is not At.ANY:
        yield f"at = {_value(workload.at.value)}"


def _listed(key: str, operations: Sequence[Operation]) -> Iterator[str]:
    yield f"{key} = ["
    yield from (f"    {_value(write_one(operation))}," for operation in operations)
    yield "]"


def _finish(finish: Finish) -> str:
    if not finish.natural:
        return "; ".join(map(write_one, finish.operations))
    return f"natural {finish.phase}" if finish.phase else "natural"


def _value(value: str | bool | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return '"' + "".join(map(_letter, value)) + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
