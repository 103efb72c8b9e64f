"""Two claims about a crash state: that it mounts, and that it mounts without trouble, such as a warning of the kernel.
An *outcome* is what a mount of a crash state showed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from bob.claim.claim import NO_PROPERTY, BrokenClaim, Claim, Context, Judgeable, PropertyLookup, Refusal, View
from bob.claim.property.judged_case import JudgedCase
from bob.crash.state import CrashState
from bob.observe.easiest import easiest
from bob.observe.observation import Observation
from bob.observe.observations import ExploredState, TroubleKind
from bob.workload.operations import Workload


@dataclass(frozen=True, slots=True)
class Mountable(Judgeable):
    kind = "unmountable"
    title = "a crash state that does not mount"
    asks = "What is asked for", "Every crash state mounts. Properties do not ask this: they are about a mounted tree."
    breach = "the file system could not be mounted"

    def headline(self, configuration: str) -> str:
        return f"{configuration} does not mount after a crash"

    def broken(self, view: View, context: Context) -> str | None:
        return None if view.observation.mounted else view.observation.summary

    def easiest(self, bench: JudgedCase) -> BrokenClaim | None:
        return unmountable(bench.unmountable, bench.observation)[0]

    def kept_in(self, bench: JudgedCase, state: CrashState) -> bool:
        return bench.satisfies(None, state)

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self:
        return cls()


def unmountable(
    states: Iterable[ExploredState], observation: Callable[[int], Observation]
) -> tuple[BrokenClaim | None, int]:
    """Return a breach of the claim that every crash state mounts, and the number of crash states that do not mount. The
    caller passes only ``states`` that do not mount. The breach shows the state that is easiest to explain. Without
    ``states``, the breach is None. The number may be larger than the number of ``states``, since one explored state may
    stand for several crash states with the same outcome. ``observation`` returns an outcome by its number."""
    found = easiest(states)
    if not found or found.shown.outcome is None:
        return None, 0
    error = observation(found.shown.outcome).error or ""
    return BrokenClaim(found.shown.state, Mountable(), error), found.states


@dataclass(frozen=True, slots=True)
class Sound(Claim):
    """The claim that a crash state mounts without ``trouble``. Trouble is a kernel warning, a fault that the file
    system's checker finds, or a fault that shows when bob removes all files."""

    trouble: TroubleKind

    kind = "trouble"
    asks = "What is asked for", "A file system that mounts is sound, whatever files it has. Properties do not ask this."

    @property
    def name(self) -> str:
        return self.trouble.value

    @property
    def title(self) -> str:
        return f"a crash state that {self.trouble.said}"

    @property
    def breach(self) -> str:
        return f"the crash state {self.trouble.said}"

    @property
    def no_shrinking(self) -> Refusal | None:
        return Refusal(
            f"a state that {self.trouble.said}",
            "bob shrinks witnesses of properties, of programs, and of states that do not mount",
        )

    def broken(self, view: View, context: Context) -> str | None:
        return next((one.words for one in view.complaints() if one.kind == self.trouble), None)

    def to_json(self) -> dict[str, Any]:
        return {**NO_PROPERTY, "trouble": self.trouble.value}

    @classmethod
    def read(cls, document: Mapping[str, Any], workload: Workload, known: PropertyLookup) -> Self | None:
        return cls(TroubleKind(document["trouble"])) if "trouble" in document else None
