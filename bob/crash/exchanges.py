"""Like nodes of a cluster: nodes of one role, such as two replicas. If two of them exchange their trees, the cluster is
the same but for names. So of the tuples that differ by such an exchange, bob checks one. The user says which nodes are
alike. bob exchanges only trees with the same files, and leaves out a tuple only if it has checked the other one."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bob.crash.tuples import Chosen


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges between nodes. No node is in two groups of ``alike``. ``files`` has a key for the files of each
    tree, for each node."""

    alike: tuple[tuple[int, ...], ...] = ()
    files: Sequence[Sequence[Hashable]] = ()

    def distinct(self, tuples: Iterable[Chosen]) -> Iterator[Chosen]:
        """Yield ``tuples``, in their order, without those that an exchange turns into an earlier one."""
        seen: set[Hashable] = set()
        for one in tuples:
            if (key := self._key(one)) not in seen:
                seen.add(key)
                yield one

    def _key(self, chosen: Chosen) -> Hashable:
        """Return a key that two tuples share if exchanges turn one into the other."""
        grouped = {node for group in self.alike for node in group}
        alone = tuple(tree for node, tree in enumerate(chosen) if node not in grouped)  # with the outputs
        each = (sorted(repr(self.files[node][chosen[node]]) for node in group) for group in self.alike)
        return alone, *map(tuple, each)
