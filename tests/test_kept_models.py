"""The models that are kept in reports/models: whole, and as sound as their page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bob.apm.model import load
from bob.claim.property.of_property import OfProperty
from bob.subject import load_set
from bob.witness.document import read

MODELS = Path(__file__).resolve().parent.parent / "reports" / "models"
SETS = sorted(path for path in MODELS.glob("*-linux-*") if path.is_dir())


@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
def test_there_is_a_model_of_each_configuration_and_none_forbids_what_was_seen(folder: Path) -> None:
    names = [made.name for made in load_set(folder.name.partition("-linux-")[0]).configurations]
    assert sorted(names) == sorted(path.stem for path in folder.glob("*.json"))
    rows = {line.split("]")[0][3:]: line for line in (folder / "README.md").read_text().splitlines() if "](" in line}
    for name in names:
        model = load(folder / f"{name}.json")
        assert model.name == name
        cells = [cell.strip() for cell in rows[name].split("|")[2:]]
        assert int(cells[0]) == len(model.promised)
        assert cells[1].startswith("0 of ")
        assert cells[2].startswith("0 of ")


def test_every_witness_of_a_refuted_clause_is_there() -> None:
    for path in MODELS.glob("*/*.json"):
        for finding in load(path).findings:
            if finding.refutation is not None and finding.refutation.witness is not None:
                witness = read(path.parent / finding.refutation.witness)
                assert isinstance(witness.claim, OfProperty)
                assert witness.claim.resolved.meaning == finding.clause.words
