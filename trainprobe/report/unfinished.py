"""The report of a readiness check that was not over in time: what had been told until then, and no
judgement but for the nodes that gave no answer while others did.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from trainprobe.checks import catalogue
from trainprobe.facts.several_hosts import SilentNode, silent_nodes
from trainprobe.model.codec import from_json
from trainprobe.model.diagnosis import Diagnosis, Report, Suspect, Undecided
from trainprobe.model.evidence import Evidence
from trainprobe.model.node_names import folded
from trainprobe.report.json_report import report_of
from trainprobe.report.phrases import clean
from trainprobe.waits.leaving_nodes_out import exclude_option

# While the tool waits for nodes, it says several times a second which of them are overdue.
NEWS_S = 3.0


def unfinished_report(
    words: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    after_s: float,
    told_s: Mapping[str, float] = MappingProxyType({}),
) -> Report:
    """Return a report that is not conclusive. `rows` are the checks that had failed or could not be
    measured (id, state, host, says) and the looks at nodes that gave no answer (node); `words` name
    case, nodes, budget and what was going on, and `told_s` is when each came.

    Nodes that gave no answer in their time, where another did, are left out.
    """
    nodes = [name for name in words.get("nodes", ()) if isinstance(name, str)]
    doing = clean(str(words.get("doing") or "getting ready to look"))
    count = words.get("count")
    where = f"{count} nodes are" if isinstance(count, int) and count > 1 else "this node is"
    silent = _silent(words, rows, after_s - told_s.get("overdue", after_s - NEWS_S))
    whole = not isinstance(count, int) or len(silent) < count
    out = list(silent) if words.get("answered") and whole else []
    checks = _checks([row for row in rows if "node" not in row])
    stays = any(row["state"] == "fail" and not set(row["hosts"]) <= set(out) for row in checks)
    failed = sum(row["state"] == "fail" for row in checks)
    why = f"trainprobe hung while {doing} and was ended after {after_s:.0f} s"
    says = f"Not known whether {where} ready: {why}."
    if silent:
        rest = "the other nodes are" if out else where
        says = f"{folded(silent)} had given no answer; not known whether {rest} ready: {why}."
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
        "exclude": out,
        "exclude_line": exclude_option(str(words.get("scheduler") or ""), out) if out else "",
        "drain": [],
        "shared": stays or not out,
    }
    found = Diagnosis(
        "at-risk" if out else "undetermined",
        conclusive=False,
        says=says,
        suspects=tuple(Suspect((), (host,), "not-visible", silent[host]) for host in out),
        undecided=(Undecided("cannot-look", why),),
        extra={"readiness": readiness},
    )
    return report_of(
        found, command="ready", case=str(words.get("case") or ""), looked_s=round(after_s, 1)
    )


def _silent(
    words: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], news_age_s: float
) -> dict[str, str]:
    """The nodes that gave no answer though they had their time, each with a sentence. Which ones
    were overdue tells nothing once the tool itself had ceased to say so: they may have answered.
    """
    records = []
    for row in rows:
        with contextlib.suppress(ValueError, TypeError):
            records += [from_json(Evidence, row["node"])] if "node" in row else []
    found = {
        fact.host: clean(fact.says)
        for fact in silent_nodes(records)
        if isinstance(fact, SilentNode) and (fact.late or fact.unstarted)
    }
    overdue = words.get("overdue") if 0 <= news_age_s < NEWS_S else ()
    for host in overdue if isinstance(overdue, list) else ():
        found.setdefault(clean(str(host)), f"{clean(str(host))} did not answer in time")
    return found


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
