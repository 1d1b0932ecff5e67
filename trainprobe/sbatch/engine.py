"""All rules over one plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainprobe.sbatch.findings import MENDED, Finding, State
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules import (
    environment,
    limits,
    other_schedulers,
    paths,
    rendezvous,
    resources,
    script_and_site,
    settings,
    steps,
    tasks,
    times,
    words,
)
from trainprobe.sbatch.schedulers import SLURM
from trainprobe.sbatch.script import read_script
from trainprobe.sbatch.site import LoginNode, Site

RULES = (
    script_and_site,
    tasks,
    steps,
    resources,
    times,
    rendezvous,
    environment,
    limits,
    paths,
    settings,
    words,
)
_MILDER: Mapping[State, State] = {"fail": "likely", "likely": "warn"}
ELSEWHERE = (
    script_and_site,
    tasks,
    steps,
    rendezvous,
    environment,
    paths,
    settings,
    words,
    other_schedulers,
)
"""The rules for scripts of other batch systems, whose sites are not asked."""
CHECKS = tuple(dict.fromkeys(check.id for rule in RULES for check in rule.CHECKS))


def plan_of(
    text: str,
    options: tuple[str, ...] = (),
    site: Site | None = None,
    login: LoginNode | None = None,
) -> Plan:
    """Read a script into a plan. It never raises, whatever the text holds."""
    login = login or LoginNode()
    script = read_script(
        text, options, login.environ, home=login.home, cwd=login.cwd, files=login.files
    )
    return Plan(script, site or Site(), login)


def checked(plan: Plan) -> tuple[Finding, ...]:
    """Return what all rules found, at least one finding for each check. A rule that fails leaves
    its checks unknown; the others stand.
    """
    findings: list[Finding] = []
    scheduler = plan.script.scheduler
    for rule in RULES if scheduler is SLURM else ELSEWHERE:
        try:
            findings += rule.check(plan)
        except Exception as error:  # noqa: BLE001 - a script of unforeseen shape must not cost the checks of the other rules
            says = f"An internal error ({type(error).__name__}) prevented this check"
            findings += [check.unknown(says) for check in rule.CHECKS]
    conditional = {
        launch.line
        for launch in plan.launches
        if launch.run.command.conditional or (launch.step and launch.step.command.conditional)
    }
    findings = [_open(plan, finding) for finding in findings]
    return tuple(
        replace(
            finding,
            says=_sentence(finding.says),
            fix=scheduler.fix(finding.fix),
            edits=finding.edits if scheduler is SLURM else (),
            state=_MILDER.get(finding.state, finding.state)
            if finding.line in conditional  # the other branch may be the one for this job
            else finding.state,
        )
        for finding in findings
    )


def _open(plan: Plan, finding: Finding) -> Finding:
    """Nothing is missing in a launch that takes options from a variable which is not known."""
    launch = next((one for one in plan.launches if one.line == finding.line), None)
    about_options = finding.id in (tasks.TASKS.id, tasks.GPUS.id, rendezvous.RENDEZVOUS.id)
    if launch is None or not launch.open or finding.state not in MENDED or not about_options:
        return finding
    says = f"{launch.place} takes options from {launch.open}, which is not known here"
    return Finding(finding.id, "skip", says)


def _sentence(says: str) -> str:
    shown = says.replace("\u27ea", "$").replace("\u27eb", "")
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def login_node_of(data: Mapping[str, Any]) -> LoginNode:
    """Read the part of the evidence that describes the login node. What has another shape is left
    out.
    """
    limits = {
        str(name): (_limit(pair[0]), _limit(pair[1]))
        for name, pair in _mapping(data.get("limits")).items()
        if isinstance(pair, list | tuple) and len(pair) == 2
    }
    return LoginNode(
        limits=limits,
        environ=_texts(data.get("environ")),
        paths=_texts(data.get("paths")),
        files=_texts(data.get("files")),
        programs={
            str(name): _mapping(about) for name, about in _mapping(data.get("programs")).items()
        },
        cwd=_text(data.get("cwd")),
        home=_text(data.get("home")),
        host=_text(data.get("host")),
    )


def _limit(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: Any) -> str:
    return value[:4000] if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> dict[str, str]:
    return {str(name): text for name, text in _mapping(value).items() if isinstance(text, str)}
