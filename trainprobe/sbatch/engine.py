"""All rules over one plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainprobe.sbatch.findings import Finding
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules import asked, host, meeting, paths, resources, settings, tasks, times
from trainprobe.sbatch.script import read_script
from trainprobe.sbatch.site import Here, Site

RULES = (asked, tasks, resources, times, meeting, host, paths, settings)
CHECKS = (
    "plan.script",
    "plan.site",
    "plan.tasks",
    "plan.gpus",
    "plan.cpus",
    "plan.mem",
    "plan.time",
    "plan.signal",
    "plan.exitcodes",
    "plan.master",
    "plan.port",
    "plan.rendezvous",
    "plan.limits",
    "plan.paths",
    "plan.output",
    "plan.debugenv",
    "plan.rename",
    "plan.names",
    "plan.errfile",
    "plan.flightrec",
)
_CHECKED_BY: Mapping[str, tuple[str, ...]] = {
    "asked": CHECKS[0:2],
    "tasks": CHECKS[2:4],
    "resources": CHECKS[4:6],
    "times": CHECKS[6:9],
    "meeting": CHECKS[9:12],
    "host": ("plan.limits", "plan.output"),
    "settings": CHECKS[15:],
}


def plan_of(
    text: str, options: tuple[str, ...] = (), site: Site | None = None, here: Here | None = None
) -> Plan:
    """Read a script into a plan. It never raises, whatever the text holds."""
    here = here or Here()
    script = read_script(text, options, here.environ, home=here.home, cwd=here.cwd)
    return Plan(script, site or Site(), here)


def checked(plan: Plan) -> tuple[Finding, ...]:
    """Return what all rules found, one at least for each check. A rule that fails leaves its
    checks unknown, and the others stand.
    """
    found: list[Finding] = []
    for rule in RULES:
        try:
            found += rule.check(plan)
        except Exception as error:  # noqa: BLE001 - a script of unforeseen shape must not cost the checks of the other rules
            name = rule.__name__.rpartition(".")[2]
            says = f"The script could not be judged here ({type(error).__name__})"
            found += [Finding(one, "unknown", says) for one in _CHECKED_BY.get(name, ())]
    return tuple(replace(one, says=_whole(one.says)) for one in found)


def _whole(says: str) -> str:
    shown = says.replace("\u27ea", "$").replace("\u27eb", "")
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def here_of(data: Mapping[str, Any]) -> Here:
    """Read the part of the evidence that tells of the login node. What has another shape is left
    out.
    """
    limits = {
        str(name): (_limit(pair[0]), _limit(pair[1]))
        for name, pair in _mapping(data.get("limits")).items()
        if isinstance(pair, list | tuple) and len(pair) == 2
    }
    return Here(
        limits=limits,
        environ=_texts(data.get("environ")),
        paths=_texts(data.get("paths")),
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
    return {str(name): told for name, told in _mapping(value).items() if isinstance(told, str)}
