"""Judges the recorded runs of each family of mechanism with the family's own causes switched off:
what the rest of the tool makes of a fault that the catalogue does not know.

python -m tests.gallery.live.families            all families; writes families.json
python -m tests.gallery.live.families locks      one of them; says what is not right
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from tests.gallery.live.calibration import calibration_error
from tests.gallery.live.kinds import KINDS
from tests.gallery.live.replay import RECORDED, judged, line_of
from tests.gallery.live.score import fit

KEPT_AT = Path(__file__).resolve().parent / "families.json"
# Causes of one mechanism: without one of them, another of the same family would still know it.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "calls": (
        "rank-conditional-collective",
        "collective-order-mismatch",
        "collective-shape-mismatch",
        "rank-divergent-forward",
        "ddp-unused-parameters",
        "ddp-marked-ready-twice",
        "uneven-inputs",
    ),
    "ended": ("rank-exited-early", "rank-killed", "native-crash", "host-oom-killed"),
    "stopped": ("process-stopped",),
    "starved": (
        "cpu-oversubscribed",
        "cpu-quota",
        "data-starvation",
        "straggler-rank",
        "memory-pressure",
    ),
    "file locks": ("file-lock-held", "extension-build-lock"),
    "process locks": (
        "fork-inherited-lock",
        "fork-thread-pool",
        "thread-deadlock",
        "gil-held",
        "import-hang",
    ),
    "queues": ("queue-deadlock", "data-worker-stuck"),
    "services": ("remote-service-wait", "hub-unreachable"),
    "network": ("network-fault", "firewall-or-route", "wrong-network-interface", "p2p-blocked"),
    "storage": ("storage-stall", "mount-missing"),
    "meeting": ("rendezvous-incomplete", "world-size-mismatch", "node-not-answering"),
    "compiling": ("rank-compiling", "extension-build-failure"),
    "general": ("rank-stuck", "rank0-long-task"),
}
# What the classes of a report (`classes` of its first cause) say, in the words of CLASSES.
CLAIMS: Mapping[str, str] = {
    "rank-held-up": "one rank does not get on",
    "calls-part": "the ranks' calls part",
    "collective-stalls": "network",
    "rank-gone": "a rank is gone",
    "rank-unseen": "a rank is gone",
    "meeting-incomplete": "a rank is gone",
    "slow-rank": "slow",
    "slow-job": "slow",
}
# What a general answer may say: a family's causes belong to one of these classes, and an answer of
# the class is no wrong one.
CLASSES: Mapping[str, tuple[str, ...]] = {
    "one rank does not get on": (
        "stopped",
        "file locks",
        "process locks",
        "queues",
        "services",
        "storage",
        "compiling",
        "general",
    ),
    "the ranks' calls part": ("calls",),
    "a rank is gone": ("ended", "meeting"),
    "slow": ("starved", "compiling"),
    "network": ("network",),
}


def classes_of(cause: str) -> set[str]:
    """The classes of a cause of the catalogue; none where it is in no family."""
    families = {family for family, ids in FAMILIES.items() if cause in ids}
    return {name for name, own in CLASSES.items() if families & set(own)}


def row_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """One run: is the verdict right, are the first cause's ranks, its class, its confidence?

    An answer is judged as what it claims to be: by the widest class that the report puts it in, and
    with the confidence that it states for that. `none` and an `unknown` without a class claim
    nothing and are as right as the ranks beside them.
    """
    first: Mapping[str, Any] = (
        result["causes"][0] if result["causes"] else {"id": "none", "ranks": [], "confidence": 0.0}
    )
    true = {name for ids, _ in result["truths"] for id_ in ids for name in classes_of(id_)}
    answer, held = first["id"], next(iter(first.get("classes") or ()), None)
    own = answer in ("unknown", "none") or bool(classes_of(answer) & true)
    return {
        "key": result["key"],
        "verdict": result["verdict"] in result["verdicts"],
        "ranks": fit(first, result)[1],
        "answer": answer,
        "claims": held["id"] if held is not None else "",
        "class": own and (held is None or CLAIMS[held["id"]] in true),
        "confidence": held["confidence"] if held is not None else first["confidence"],
        "named": bool(first.get("named")),
        "by name": [first["confidence"], own],
    }


def _switch_off(ids: tuple[str, ...]) -> None:
    from trainprobe import causes

    every = causes.built()
    remaining = tuple(cause for cause in every if cause.id not in ids)
    mock.patch.object(causes, "built", return_value=remaining).start()


def without(family: str, processes: int = 2) -> list[dict[str, Any]]:
    """The results of all runs whose true cause is of the family, judged without the family."""
    ids = FAMILIES[family]
    kinds = {name for name, kind in KINDS.items() if kind.cause in ids}
    paths = [
        path
        for path in sorted(RECORDED.glob("*.xz"))
        if path.name.split(".")[0] in kinds and not path.name.endswith(".deep.xz")
    ]
    with multiprocessing.get_context("spawn").Pool(
        processes, initializer=_switch_off, initargs=(ids,)
    ) as pool:
        return pool.map(judged, paths, chunksize=2)


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of the runs, each from 0 to 1; the calibration error of the widest class that was
    claimed, and that of the causes that were named, which are right where the true one is of their
    class.
    """
    listed = list(rows)
    share = {
        name: sum(bool(row[name]) for row in listed) / len(listed)
        for name in ("verdict", "ranks", "class")
    }
    claimed = [
        (row["confidence"], row["class"] and row["ranks"])
        for row in listed
        if row["named"] or row.get("claims")
    ]
    by_name = [
        (row["by name"][0], row["by name"][1] and row["ranks"]) for row in listed if row["named"]
    ]
    return {
        "runs": len(listed),
        **share,
        "wrong and named": sum(row["named"] and not row["class"] for row in listed) / len(listed),
        "calibration error": calibration_error(claimed) if claimed else 0.0,
        "of named causes": calibration_error(by_name) if by_name else 0.0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], default=[])
    asked: list[str] = parser.parse_args().families
    found: dict[str, list[dict[str, Any]]] = {}
    for family in asked or FAMILIES:
        results = without(family)
        found[family] = [row_of(result) for result in results]
        if found[family]:
            print(family, {name: round(n, 3) for name, n in summary(found[family]).items()})
        if asked:
            wrong = {
                row["key"]
                for row in found[family]
                if not (row["verdict"] and row["ranks"] and row["class"])
            }
            print("\n".join(line_of(result) for result in results if result["key"] in wrong))
    rows = [row for family in found.values() for row in family]
    print("all", {name: round(n, 3) for name, n in summary(rows).items()})
    if not asked:
        lines = (json.dumps({"family": family, **row}) for family in found for row in found[family])
        KEPT_AT.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
