"""What a search has found so far: the results of its lots as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bob.result import Result, Run
from bob.search.merged import merged
from bob.search.space import BESIDE
from bob.search.spaces import Search
from bob.store.search_directory import SearchDirectory


def told(directory: SearchDirectory, lots: Sequence[tuple[Path, Result]]) -> Result:
    """The results of ``lots``, at least one, as one; the search's directory keeps it."""
    about, first = directory.about(), lots[0][1]
    asked = Search.from_json(about["search"]).space().asked
    run = Run(about["id"], about["started"], about.get("finished", ""), about["bob"], first.run.seed, first.run.budget)
    result = merged([(folder.name, result) for folder, result in lots], [*(one.name for one in asked), BESIDE], run)
    directory.save_result(result)
    return result
