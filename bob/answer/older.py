"""Convert results of older versions of bob to ``bob.result/2``. The older formats are ``bob.result/1`` (of
``bob probe``, ``bob matrix`` or ``bob search``), ``bob.app/1`` (of a program) and ``bob.try/1`` (of ``bob try``). If a
document is damaged, the conversion raises LookupError, TypeError, ValueError or AttributeError, or returns a document
that is not a valid ``bob.result/2``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bob import counts
from bob.claim.property.vocabulary import row_of_today
from bob.claim.verdict import Verdict

Plain = Mapping[str, Any]
_ENVIRONMENT = ("kernel", "image", "accelerator", "clock", "qemu", "libvirt", "mkfs_version")
_SAFETY = {"safe": Verdict.HOLDS, "vulnerable": Verdict.FAILS, "unknown": Verdict.UNKNOWN}
_NONE = {"explored": 0, "legal_writes": 0, "legal_sectors": 0, "exhaustive": None}


def of_table(document: Plain) -> dict[str, Any]:
    """Return the result of ``bob probe``, ``bob matrix`` or ``bob search`` as a ``bob.result/2``."""
    return {
        **{name: document[name] for name in ("run", "environment", "device_model")},
        "subjects": [_configuration(one) for one in document["configurations"]],
    }


def _configuration(document: Plain) -> dict[str, Any]:
    """Return a column of an older table as a subject. A column may be *condensed*: the explored states of its workloads
    are in the list ``states``, and workloads with equal states have the same index into this list."""
    recordings = _Recordings(document.get("states"))
    options = ("name", "fs", "mkfs_options", "mount_options", "effective_mount_options", "mkfs_version")
    more = ("examined", "examinable", "findings", "notes")
    return {
        **{name: document[name] for name in (*options, *more) if name in document},
        "answers": [_property(one, recordings) for one in document["properties"]],
        "beside": [
            *_unmountable([(document["unmountable"], 0)]),
            *_troubles(document.get("troubles", ())),
        ],
        "recordings": recordings.every,
    }


def _property(document: Plain, recordings: _Recordings) -> dict[str, Any]:
    """Return a cell of an older table as an answer. bob ignores the cell's field ``searched``, which marked a cell
    whose property failed only in a search. Such a cell has the verdict FAILS, although none of the workloads that it
    lists fails."""
    verdict, evidence = document["verdict"], document["evidence"]
    states = sum(counts.read(one.get("violations", 0)) for one in document["workloads"])
    way = {"evidence": "" if evidence is None else evidence, "states": states, "witness": document["witness"]}
    name = row_of_today(document["name"])
    return {
        "claim": {"kind": "property", "name": name, **_only(document, "family", "meaning")},
        "verdict": verdict,
        "states": document["states"],
        "ways": [way] if verdict == Verdict.FAILS and (evidence or states) else [],
        "recordings": [
            {"recording": recordings.number(one), **_only(one, "verdict", "violations", "reason")}
            for one in document["workloads"]
        ],
        "reason": document["reason"],
    }


def _unmountable(found: list[tuple[Plain, int]]) -> list[dict[str, Any]]:
    ways = [
        {
            "evidence": "" if one["error"] is None else one["error"],
            "states": one["states"],
            "witness": one["witness"],
            "place": place,
        }
        for one, place in found
        if counts.read(one["states"])
    ]
    return [_beside("unmountable", "unmountable", ways)] if ways else []


def _troubles(found: list[Plain]) -> list[dict[str, Any]]:
    kinds = dict.fromkeys(one["kind"] for one in found)
    return [
        _beside(
            "trouble",
            kind,
            [{"evidence": one["words"], **_only(one, "states", "witness")} for one in found if one["kind"] == kind],
        )
        for kind in kinds
    ]


def _beside(kind: str, name: str, ways: list[dict[str, Any]]) -> dict[str, Any]:
    return {"claim": {"kind": kind, "name": name}, "verdict": Verdict.FAILS, "states": _NONE, "ways": ways}


def of_question(document: Plain) -> dict[str, Any]:
    """Return the result of ``bob try`` as a ``bob.result/2``. A finish says how the workload ends. The oldest documents
    lack the list ``finishes``; their only finish is a field of the workload."""
    made, workload = document["configuration"], document["workload"]
    alone = {"name": workload["finish"]["name"], **_only(document, "states", "unmountable"), "refused": None}
    finishes = document.get("finishes") or [alone]
    return {
        **{name: document[name] for name in ("run", "environment", "device_model")},
        "subjects": [
            {
                **_only(made, "name", "fs", "mkfs_options", "mount_options"),
                "effective_mount_options": document["effective_mount_options"],
                "answers": [_expectation(one, document["states"]) for one in document["expectations"]],
                "beside": _unmountable([(one["unmountable"], place) for place, one in enumerate(finishes)]),
                "notes": document["notes"],
                "recordings": [_finish(workload["name"], one) for one in finishes],
            }
        ],
        "workload": {**workload, **_only(document, "at")},
    }


def _finish(name: Any, document: Plain) -> dict[str, Any]:
    fall = document.get("fall")
    return {
        "name": name,
        "finish": document["name"],
        "states": document["states"],
        "is_recorded": document["refused"] is None,
        "fall": None if fall is None else _only(fall, "cause", "step", "console"),
    }


def _expectation(document: Plain, states: Any) -> dict[str, Any]:
    alone = {name: document[name] for name in ("verdict", "violations", "needs_no_crash", "reason")}
    return {
        "claim": {"kind": "expectation", "name": document["expectation"]},
        "verdict": document["verdict"],
        "states": states,
        "ways": [
            {
                **_only(way, "evidence", "witness"),
                "states": way["violations"],
                "place": way.get("finish", 0),
                "by_recording": way.get("by_finish", [way["violations"]]),
            }
            for way in document["ways"]
        ],
        "recordings": [
            {"recording": place, **_only(one, "verdict", "violations", "needs_no_crash", "reason")}
            for place, one in enumerate(document.get("by_finish", [alone]))
        ],
        "reason": document["reason"],
    }


def of_program(document: Plain) -> dict[str, Any]:
    """Return the result of a program as a ``bob.result/2``. A document that --json wrote may lack the run and its
    environment."""
    on = document.get("environment", {})
    disk = {"write_cache": "volatile", "atomic_write_bytes": 512}
    return {
        "run": {name: document.get(name, "") for name in ("id", "started", "finished")},
        "environment": {name: on.get(name, "") for name in _ENVIRONMENT},
        "device_model": {**disk, **_only(document, "write_cache", "atomic_write_bytes", "completion")},
        "subjects": [
            *(_configuration_of_program(one) for one in document["configurations"]),
            *(_model(one) for one in document.get("models", ())),
        ],
        "program": {**document["program"], "refuses": document.get("refuses", [])},
        "protocols": document.get("protocols", []),
    }


def _configuration_of_program(document: Plain) -> dict[str, Any]:
    exact = ("explored", "legal_writes", "legal_sectors", "exhaustive", "explored_writes")
    more = ("unmountable", "unmountable_writes")
    states = {"mounted": document["mounted_states"], **_only(document, *exact, *more)}
    return {
        "name": document["name"],
        "fs": document["name"].partition("-")[0],
        "effective_mount_options": document["mounted"],
        "answers": [_checked(document, states, lambda one: one["states"])],
        "checks": {**_only(document, "windows", "trees"), "runs": document["checks"]},
        "notes": document["notes"],
    }


def _model(document: Plain) -> dict[str, Any]:
    whole = {"is_all": document["all"], "is_counted": document.get("counted", False)}
    more = ("about", "operations", "micro_operations", "tried", "allowed", "missed")
    return {
        "name": document["model"],
        "answers": [_checked(document, _NONE, lambda one: one["trees"])],
        "checks": {"windows": 0, "trees": document["trees"], "runs": document["checks"]},
        "model": {**whole, **_only(document, *more)},
        "notes": document["notes"],
    }


def _checked(document: Plain, states: Plain, shown: Callable[[Plain], Any]) -> dict[str, Any]:
    same = ("consequence", "evidence", "trees", "told", "witness", "step", "crossed")
    return {
        "claim": {"kind": "checker", "name": "checker"},
        "verdict": _SAFETY[document["safety"]],
        "states": states,
        "ways": [
            {
                **_only(one, *same),
                "states": shown(one),
                "relied_on": [_relied_on(relied) for relied in one.get("relied_on", ())],
            }
            for one in document["vulnerabilities"]
        ],
        "reason": document["reason"],
    }


def _relied_on(document: Plain) -> dict[str, Any]:
    explanation = _only(document, "reliance", "missing", "there", "beside")
    return {"explanation": explanation, **_only(document, "sentence", "calls", "trees", "kind")}


class _Recordings:
    """The recordings of a column. The list ``every`` has each of them once. If the column is condensed, ``shared``
    lists the explored states, and a workload has an index into this list."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared
        self._numbers: dict[object, int] = {}
        self.every: list[dict[str, Any]] = []

    def number(self, document: Plain) -> int:
        states = document["states"]
        if type(states) is int:
            if states < 0:
                raise ValueError(f"states index {states} is out of range")
            states = self._shared[states]
        found = {**_only(document, "name", "finish"), "states": states}
        key = str(found)
        if key not in self._numbers:
            self._numbers[key] = len(self.every)
            self.every.append(found)
        return self._numbers[key]


def _only(document: Plain, *names: str) -> dict[str, Any]:
    return {name: document[name] for name in names if name in document}
