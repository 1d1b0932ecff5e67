"""Whether sbatch accepts the script, and whether the site has what it requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.sbatch import numbers
from trainprobe.sbatch.directives import Flaw, split_directive
from trainprobe.sbatch.findings import Check, Edit, Edits, Finding
from trainprobe.sbatch.options import options_of
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.schedulers import SLURM

SCRIPT, SITE = CHECKS = Check("plan.script"), Check("plan.site")
_FIXES = {
    "late": "move it above the first command",
    "mistyped": "#SBATCH, in capitals and without a blank",
    "shebang": "#!/bin/bash as the first line",
    "dos": "dos2unix, or sed -i 's/\\r$//'",
    "variable": "write the path out; sbatch replaces %j, %x, %u and the like",
}


def check(plan: Plan) -> Iterator[Finding]:
    yield from _script(plan)
    yield from _site(plan)


def _script(plan: Plan) -> Iterator[Finding]:
    for flaw in plan.script.flaws:
        if flaw.kind == "foreign":
            yield SCRIPT.warn(flaw.says, "see sbatch --help at the site", flaw.line)
            continue
        if flaw.kind == "mistyped" and re.match(r"#\s+SBATCH", plan.script.line(flaw.line)):
            yield _commented(plan, flaw)
            continue
        value = "" if flaw.kind == "dos" else plan.script.line(flaw.line)[:100]
        fix = _FIXES.get(flaw.kind, "see sbatch --help")
        yield SCRIPT.fail(flaw.says, fix, flaw.line, value, _edits(plan, flaw))
    for first, second in plan.script.repeated:
        says = (
            f"--{first.name} is set twice: to {first.value} in {first.where} and to {second.value}"
            f" in {second.where}, which wins"
        )
        yield SCRIPT.warn(says, "remove one of them", second.line)
    if not plan.script.flaws and not plan.script.repeated:
        count = sum(len(part) for part in plan.script.components)
        yield SCRIPT.ok(f"{plan.script.scheduler.submit} reads all {count} options")


def _commented(plan: Plan, flaw: Flaw) -> Finding:
    """`# SBATCH` is written by mistake, and to leave an option out."""
    text = plan.script.line(flaw.line)
    words = split_directive(re.sub(r"^#\s*SBATCH", "", text))
    names = [option.name for option in options_of(words).options]
    shapes = {"nodes", "ntasks", "ntasks-per-node", "gpus-per-node", "gres", "time", "mem"}
    missing = any(name in shapes and name not in plan.options for name in names)
    made = SCRIPT.likely if missing else SCRIPT.warn
    return made(flaw.says, _FIXES["mistyped"], flaw.line, text[:100], _edits(plan, flaw))


def _edits(plan: Plan, flaw: Flaw) -> Edits:
    text = plan.script.line(flaw.line)
    if flaw.kind == "late":
        above = min(plan.above_commands, plan.script.first_command)
        return (Edit(flaw.line, "delete"), Edit(above, "insert", text.rstrip()))
    if flaw.kind == "mistyped":
        return (Edit(flaw.line, "replace", re.sub(r"^#\s*\w+", "#SBATCH", text)),)
    if flaw.kind == "shebang":
        return (Edit(1, "insert", "#!/bin/bash"),)
    if flaw.kind == "dos":
        return tuple(
            Edit(number, "replace", line.rstrip("\r"))
            for number, line in enumerate(plan.script.lines, start=1)
            if line.endswith("\r")
        )
    return ()


def _site(plan: Plan) -> Iterator[Finding]:
    site, scheduler = plan.site, plan.script.scheduler
    if scheduler is not SLURM:
        yield SITE.skip(f"{scheduler.name} is not asked what the site has")
        return
    if not site.known:
        says = "; ".join(site.unknown) or "SLURM did not tell its configuration"
        yield SITE.unknown(says, "run it on a login node")
        return
    wrong = [*_partition(plan), *_enough_nodes(plan), *_features(plan)]
    yield from wrong
    if wrong:
        return
    if site.unknown:
        yield SITE.unknown("; ".join(site.unknown), "run it again: scontrol did not answer")
        return
    name = plan.partition.name if plan.partition else "the default partition"
    yield SITE.ok(f"{len(plan.nodes)} nodes of {name} can run it")


def _partition(plan: Plan) -> Iterator[Finding]:
    names, line = plan.option("partition") or "", plan.line_of("partition")
    known = [partition.name for partition in plan.site.partitions]
    unknown = [name for name in names.split(",") if name not in known]
    if names and known and unknown:
        fix = f"one of {', '.join(known[:8])}"
        yield SITE.fail(f"The site has no partition {unknown[0]}", fix, line, names)
    partition = plan.partition
    if partition is not None and partition.state and partition.state != "UP":
        says = f"Partition {partition.name} is {partition.state}: it starts no jobs"
        yield SITE.fail(says, "another partition, or wait", line, partition.state)


def _enough_nodes(plan: Plan) -> Iterator[Finding]:
    wanted, partition, name = plan.job.nodes, plan.partition, plan.partition_name
    line = plan.line_of("nodes", "ntasks", "nodelist")
    if plan.option("partition") and partition is None:
        return
    limit = partition.max_nodes if partition else None
    if limit is not None and wanted > limit:
        says = f"The job requests {wanted} nodes; partition {name} allows {limit}"
        yield SITE.fail(says, f"--nodes={limit}", line, str(wanted))
        return
    existing = {node.name for node in plan.site.nodes_of(partition)}
    existing = existing or set(partition.nodes if partition else ())
    if not existing:
        return
    unknown = [
        host for host in numbers.hosts(plan.option("nodelist") or "") if host not in existing
    ]
    if unknown:
        says = f"{unknown[0]} of --nodelist is not a node of {name}"
        yield SITE.fail(says, "correct --nodelist", plan.line_of("nodelist"), unknown[0])
        return
    usable = [node for node in plan.nodes if node.usable]
    if wanted > len(existing):
        says = f"The job requests {wanted} nodes and would never start: {name} has {len(existing)}"
        yield SITE.fail(says, f"--nodes={len(existing)}", line, str(wanted))
    elif plan.nodes and wanted > len(usable):
        says = (
            f"The job requests {wanted} nodes and would wait: of {len(plan.nodes)} that could run"
            f" it, {len(usable)} are up now"
        )
        yield SITE.warn(says, "sinfo -R shows the reasons", line, str(wanted))


def _features(plan: Plan) -> Iterator[Finding]:
    constraint = plan.option("constraint")
    if not constraint or not plan.nodes or re.search(r"[\[\](]", constraint):
        return
    existing = {feature for node in plan.nodes for feature in node.features}
    wanted = [name.partition("*")[0].strip() for name in re.split(r"[&|,]", constraint)]
    missing = [name for name in wanted if name and name not in existing]
    if missing:
        fix = f"one of {', '.join(sorted(existing)[:8]) or 'none'}"
        says = f"No node has the feature {missing[0]} (--constraint)"
        yield SITE.fail(says, fix, plan.line_of("constraint"), constraint)
