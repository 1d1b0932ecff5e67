"""What sbatch makes of the script itself, and whether the site has what is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.findings import Edit, Finding
from trainprobe.sbatch.plan import Plan, found

SCRIPT, SITE = "plan.script", "plan.site"


def check(plan: Plan) -> Iterator[Finding]:
    yield from _script(plan)
    yield from _site(plan)


def _script(plan: Plan) -> Iterator[Finding]:
    lines, wrong = plan.script.lines, []
    for flaw in plan.script.flaws:
        line, text = flaw.line, lines[flaw.line - 1] if 0 < flaw.line <= len(lines) else ""
        edits: tuple[Edit, ...]
        if flaw.kind == "late":
            edits = (
                Edit(line, "delete"),
                Edit(min(plan.above_commands, plan.script.first_command), "insert", text.rstrip()),
            )
            wrong.append(
                found(
                    SCRIPT,
                    "fail",
                    flaw.says,
                    "move it above the first command",
                    line,
                    text[:100],
                    edits,
                )
            )
        elif flaw.kind == "meant":
            mended = re.sub(r"^#\s*\w+", "#SBATCH", text)
            wrong.append(
                found(
                    SCRIPT,
                    "fail",
                    flaw.says,
                    "#SBATCH, in capitals and without a blank",
                    line,
                    text[:100],
                    (Edit(line, "replace", mended),),
                )
            )
        elif flaw.kind == "shebang":
            wrong.append(
                found(
                    SCRIPT,
                    "fail",
                    flaw.says,
                    "#!/bin/bash as the first line",
                    1,
                    text[:60],
                    (Edit(1, "insert", "#!/bin/bash"),),
                )
            )
        elif flaw.kind == "dos":
            edits = tuple(
                Edit(number, "replace", one.rstrip("\r"))
                for number, one in enumerate(lines, start=1)
                if one.endswith("\r")
            )
            wrong.append(
                found(SCRIPT, "fail", flaw.says, "dos2unix, or sed -i 's/\\r$//'", line, "", edits)
            )
        elif flaw.kind == "variable":
            wrong.append(
                found(
                    SCRIPT,
                    "fail",
                    flaw.says,
                    "write the path out; sbatch knows %j, %x, %u and the like",
                    line,
                    text[:100],
                )
            )
        else:
            wrong.append(found(SCRIPT, "fail", flaw.says, "see sbatch --help", line, text[:100]))
    wrong += [
        found(
            SCRIPT,
            "warn",
            f"--{first.name} is given twice: {first.value} in {first.where}, and {second.value} in"
            f" {second.where}, which counts",
            "leave one of them",
            second.line,
        )
        for first, second in plan.script.repeated
    ]
    yield from wrong
    if not wrong:
        yield found(
            SCRIPT,
            "ok",
            f"{sum(len(part) for part in plan.script.components)} options, all of which sbatch"
            " reads",
        )


def _site(plan: Plan) -> Iterator[Finding]:
    site = plan.site
    if not site.known:
        yield found(
            SITE,
            "unknown",
            "; ".join(site.unknown) or "SLURM's configuration could not be asked",
            "run it on a login node",
        )
        return
    wrong = [*_partition(plan), *_enough_nodes(plan), *_features(plan)]
    yield from wrong
    if wrong:
        return
    if site.unknown:
        yield found(
            SITE, "unknown", "; ".join(site.unknown), "run it again: scontrol did not answer"
        )
        return
    name = plan.partition.name if plan.partition else "the default partition"
    yield found(SITE, "ok", f"{len(plan.nodes)} nodes of {name} can run it")


def _partition(plan: Plan) -> Iterator[Finding]:
    asked, line = plan.given("partition"), plan.line_of("partition")
    known = [one.name for one in plan.site.partitions]
    if asked and known:
        strange = [name for name in asked.split(",") if name not in known]
        if strange:
            yield found(
                SITE,
                "fail",
                f"The site has no partition {strange[0]}",
                f"one of {', '.join(known[:8])}",
                line,
                asked,
            )
    partition = plan.partition
    if partition is not None and partition.state and partition.state != "UP":
        yield found(
            SITE,
            "fail",
            f"Partition {partition.name} is {partition.state}: jobs do not start there",
            "another partition, or wait",
            line,
            partition.state,
        )


def _enough_nodes(plan: Plan) -> Iterator[Finding]:
    wanted, partition = plan.job.nodes, plan.partition
    line = plan.line_of("nodes", "ntasks", "nodelist")
    if plan.given("partition") and partition is None:
        return
    name = partition.name if partition else "the cluster"
    if partition is not None and partition.max_nodes is not None and wanted > partition.max_nodes:
        yield found(
            SITE,
            "fail",
            f"{wanted} nodes are asked for, and partition {name} gives a job {partition.max_nodes}"
            " at most",
            f"--nodes={partition.max_nodes}",
            line,
            str(wanted),
        )
        return
    there = {node.name for node in plan.site.nodes_of(partition)} or set(
        partition.nodes if partition else ()
    )
    if not there:
        return
    strange = [one for one in numbers.hosts(plan.given("nodelist") or "") if one not in there]
    if strange:
        yield found(
            SITE,
            "fail",
            f"{strange[0]} of --nodelist is no node of {name}",
            "correct --nodelist",
            plan.line_of("nodelist"),
            strange[0],
        )
        return
    left = plan.nodes
    if wanted > len(there):
        yield found(
            SITE,
            "fail",
            f"{wanted} nodes are asked for, and {name} has {len(there)}: the job would never start",
            f"--nodes={len(there)}",
            line,
            str(wanted),
        )
    elif left and wanted > len([node for node in left if node.usable]):
        usable = [node for node in left if node.usable]
        says = (
            f"{wanted} nodes are asked for, and {len(usable)} of {len(left)} that could run it are"
            " up now: the job would wait"
        )
        yield found(SITE, "warn", says, "sinfo -R says why", line, str(wanted))


def _features(plan: Plan) -> Iterator[Finding]:
    asked = plan.given("constraint")
    if not asked or not plan.nodes or re.search(r"[\[\](]", asked):
        return
    there = {feature for node in plan.nodes for feature in node.features}
    for name in re.split(r"[&|,]", asked):
        bare = name.partition("*")[0].strip()
        if bare and bare not in there:
            yield found(
                SITE,
                "fail",
                f"No node has the feature {bare} (--constraint)",
                f"one of {', '.join(sorted(there)[:8]) or 'none'}",
                plan.line_of("constraint"),
                asked,
            )
            return
