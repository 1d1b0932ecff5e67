"""A batch script and its site judged by rules. Whoever reads no `sbatch` record pays nothing for
the rules: their import stands inside `facts/reading.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainprobe.checks import catalogue
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.node_checks import CheckProgram, ReadyPlan
from trainprobe.facts.sbatch_plan import SbatchPlan
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.sbatch.engine import checked, login_node_of, plan_of
from trainprobe.sbatch.findings import MENDED, Finding, corrected, diff, worst
from trainprobe.sbatch.manifest_rules import check_manifest
from trainprobe.sbatch.manifests import is_manifest
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.site import MOST_NODES, Site, node_of, partition_of, version_of

PROGRAM = "sbatch"
MOST_LINES = 400
HARDER = {"plan.port": "blocker"}
"""Where a failure before submission means more than on a node: there a port that is taken now,
here one that no job could use.
"""


def parse_sbatch(record: Evidence) -> list[Fact]:
    """One check for each rule, in the worst state of what it found; and the plan with the lines."""
    text = fields.text(record.data, "text", cap=2_000_000)
    after = text
    if is_manifest(text):
        found = check_manifest(text)
        host = login_node_of(fields.part(record.data, "here")).host or "this host"
    else:
        plan = plan_from(record.data)
        found, text = checked(plan), plan.script.text
        after = corrected(text, [one for one in found if one.state in MENDED])
        host = plan.login.host or "this host"
    base: dict[str, Any] = {"evidence": (record.id,), "cell": "checks", "host": host}
    checks = [
        _check(name, [one for one in found if one.id == name], base)
        for name in dict.fromkeys(one.id for one in found)
    ]
    name = fields.text(record.data, "script", cap=4000)
    rows = tuple((one.id, one.state, one.line, one.says, one.fix) for one in found)
    whole = SbatchPlan(
        (record.id,),
        "checks",
        None,
        name,
        rows,
        diff(text, after, name.rpartition("/")[2] or "job.sh")[:MOST_LINES],
    )
    asked = ReadyPlan((record.id,), "checks", None, "quick", "submit", "sbatch", (host,))
    return [asked, CheckProgram(**base, name=PROGRAM), *checks, whole]


def mended(data: Mapping[str, Any]) -> str:
    """The corrected script of a look's data."""
    if is_manifest(fields.text(data, "text", cap=2_000_000)):
        return fields.text(data, "text", cap=2_000_000)
    plan = plan_from(data)
    return corrected(plan.script.text, [one for one in checked(plan) if one.state in MENDED])


def plan_from(data: Mapping[str, Any]) -> Plan:
    """The plan that a record of kind `sbatch` holds."""
    site = site_of(fields.part(data, "site"))
    return plan_of(
        fields.text(data, "text", cap=2_000_000),
        fields.texts(data, "options"),
        site,
        login_node_of(fields.part(data, "here")),
    )


def site_of(data: Mapping[str, Any]) -> Site:
    """The site as the look wrote it down; rows that cannot be read are left out."""
    config = {
        str(name): value
        for name, value in fields.part(data, "config").items()
        if isinstance(value, str)
    }
    rows = {
        name: [
            _texts(row) for row in fields.items(data, name)[:MOST_NODES] if isinstance(row, Mapping)
        ]
        for name in ("partitions", "nodes")
    }
    return Site(
        version=version_of(fields.text(data, "version"))
        or version_of(config.get("SLURM_VERSION", "")),
        config=config,
        partitions=tuple(partition_of(row) for row in rows["partitions"]),
        nodes=tuple(node_of(row) for row in rows["nodes"]),
        unknown=fields.texts(data, "unknown"),
    )


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): value for name, value in row.items() if isinstance(value, str)}


def _check(name: str, found: list[Finding], base: Mapping[str, Any]) -> HostCheck:
    state = worst(found)
    said = [one for one in found if one.state == state]
    spec = catalogue().get(name)
    severity, who, source, threshold = (
        (spec.severity, spec.who, spec.source, spec.threshold)
        if spec is not None
        else ("warning", "user", "", "")
    )
    return HostCheck(
        **base,
        name=name,
        status="fail" if state == "likely" else state,
        value=said[0].value,
        says=" ".join(dict.fromkeys(one.says for one in said)),
        fix="; ".join(dict.fromkeys(one.fix for one in said if one.fix)),
        probe=PROGRAM,
        severity=HARDER.get(name, severity),
        who=who,
        source=source,
        threshold=threshold,
        sure=state != "likely",
    )
