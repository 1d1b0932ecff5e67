"""The report of a readiness check that was not over in time: what had been told until then, and
no judgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainprobe.checks import catalogue
from trainprobe.model.diagnosis import Diagnosis, Report, Undecided
from trainprobe.report.json_report import report_of
from trainprobe.report.phrases import clean


def unfinished_report(
    words: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], after_s: float
) -> Report:
    """Return an undetermined report. `rows` are the checks that had failed or could not be
    measured: id, state, host, says; `words` name case, nodes, budget and what was going on.
    """
    nodes = [name for name in words.get("nodes", ()) if isinstance(name, str)]
    doing = clean(str(words.get("doing") or "getting ready to look"))
    count = words.get("count")
    where = f"{count} nodes are" if isinstance(count, int) and count > 1 else "this node is"
    checks = _checks(rows)
    failed = sum(row["state"] == "fail" for row in checks)
    why = f"trainprobe hung while {doing} and was ended after {after_s:.0f} s"
    says = f"Not known whether {where} ready: {why}."
    if failed:
        says += f" Until then {failed} {'check' if failed == 1 else 'checks'} had failed."
    dropped = [{"id": "the judgement", "reason": why, "hosts": []}]
    readiness = {
        "ready": False,
        "budget": str(words.get("budget") or "quick"),
        "slot": "step",
        "nodes": nodes,
        "checks": checks,
        "differences": [],
        "isolation": {},
        "dropped": dropped,
        "exclude": [],
        "exclude_line": "",
        "drain": [],
        "shared": True,
    }
    found = Diagnosis(
        "undetermined",
        conclusive=False,
        says=says,
        undecided=(Undecided("cannot-look", why),),
        extra={"readiness": readiness},
    )
    return report_of(
        found, command="ready", case=str(words.get("case") or ""), looked_s=round(after_s, 1)
    )


def _checks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the report's form, nodes that say the same together."""
    known = catalogue()
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        check, state, host, says = (
            clean(str(row.get(name, ""))) for name in ("id", "state", "host", "says")
        )
        spec = known.get(check) or known.get(check.partition(":")[0])
        one = found.setdefault(
            (check, state, says),
            {
                "id": check,
                "state": state,
                "severity": spec.severity if spec else "degraded",
                "who": spec.who if spec else "user",
                "hosts": [],
                "says": says,
                "value": "",
                "fix": spec.fix if spec and state == "fail" else "",
                "threshold": spec.threshold if spec else "",
                "source": spec.source if spec else "",
            },
        )
        one["hosts"] += [host] if host and host not in one["hosts"] else []
    return list(found.values())
