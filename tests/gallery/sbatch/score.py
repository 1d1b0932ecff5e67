"""How many planted faults of batch scripts are told, and how much is told that is not there.

python -m tests.gallery.sbatch.score             the figures, and what was missed
python -m tests.gallery.sbatch.score NAME        what is said of one script
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainprobe.facts.sbatch_rules import site_of
from trainprobe.sbatch.engine import checked, login_node_of, plan_of
from trainprobe.sbatch.findings import MENDED, Finding, corrected
from trainprobe.sbatch.plan import Plan
from trainprobe.sbatch.rules.paths import named_paths
from trainprobe.targets.slurm_site import NODE_FIELDS, PARTITION_FIELDS, config_of, rows_of

HERE = Path(__file__).parent
ADVICE = ("plan.errfile", "plan.flightrec", "plan.software")
"""What is advised to any job that has not got it; nobody calls a script wrong for it."""
ENVIRON = {"HOME": "/home/me", "USER": "me", "PATH": "/usr/bin"}


@cache
def site_told() -> dict[str, Any]:
    told = {
        what: (HERE / "site" / f"{what}.txt").read_text(encoding="utf-8")
        for what in ("config", "partitions", "nodes")
    }
    return {
        "config": config_of(told["config"]),
        "partitions": list(rows_of(told["partitions"], PARTITION_FIELDS)),
        "nodes": list(rows_of(told["nodes"], NODE_FIELDS)),
    }


@cache
def _surroundings() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((HERE / "surroundings.yaml").read_text(encoding="utf-8"))
    return found


def plan_for(name: str, text: str) -> Plan:
    """The plan of a script on the gallery's site, with what surroundings.yaml says of it."""
    around: dict[str, Any] = _surroundings().get(name, {})
    told = site_told()
    site = site_of(
        {
            "version": around.get("version", "slurm 24.05.4"),
            "config": told["config"] | around.get("config", {}),
            "partitions": told["partitions"],
            "nodes": told["nodes"],
        }
    )
    programs = {
        "train.py": {"workers": 2, "inits": True, "reads_slurm": True},
        "main.py": {"reads_slurm": True},
    } | around.get("programs", {})
    here = {
        "environ": ENVIRON,
        "limits": (
            {
                "nofile": [65536, 524288],
                "as": [None, None],
                "cpu": [None, None],
                "memlock": [8388608, 8388608],
            }
            | around.get("limits", {})
        ),
        "programs": programs,
        "cwd": "/work/project",
        "home": "/home/me",
        "host": "login1",
    }
    first = plan_of(text, (), site, login_node_of(here))
    paths = {
        path: "folder" if role in ("output", "error", "cd", "chdir", "venv") else "file"
        for path, role, _ in named_paths(first)
    }
    paths |= dict.fromkeys(around.get("missing", ()), "missing")
    return plan_of(text, (), site, login_node_of({**here, "paths": paths}))


def told(name: str, kind: str) -> tuple[Plan, tuple[Finding, ...]]:
    plan = plan_for(name, (HERE / kind / f"{name}.sh").read_bytes().decode())
    return plan, checked(plan)


def names(kind: str) -> list[str]:
    return sorted(path.stem for path in (HERE / kind).glob("*.sh"))


def score() -> dict[str, Any]:
    """The figures: of planted scripts how many faults are told and how many other failures, of
    sound ones what is told of them, by name.
    """
    said = {name: told(name, "planted")[1] for name in names("planted")}
    truth: dict[str, dict[str, str]] = yaml.safe_load(
        (HERE / "truth.yaml").read_text(encoding="utf-8")
    )
    missed = [
        name
        for name, one in truth.items()
        if not any(row.id == one["check"] and row.state == one["state"] for row in said[name])
    ]
    beside = {
        name: [
            (row.id, row.says)
            for row in rows
            if row.state in ("fail", "likely") and row.id != truth[name]["check"]
        ]
        for name, rows in said.items()
    }
    sound = {
        name: [
            (row.id, row.state, row.says)
            for row in told(name, "sound")[1]
            if row.state in (*MENDED, "unknown") and row.id not in ADVICE
        ]
        for name in names("sound")
    }
    healed, mended = [], 0
    for name in said:
        plan, rows = told(name, "planted")
        after = corrected(plan.script.text, [row for row in rows if row.state in MENDED])
        if after != plan.script.text and any(
            row.id == truth[name]["check"] and row.edits for row in rows
        ):
            mended += 1
            again = checked(plan_for(name, after))
            healed += (
                [name]
                if not any(
                    row.id == truth[name]["check"] and row.state in ("fail", "likely", "unknown")
                    for row in again
                )
                else []
            )
    return {
        "planted": len(truth),
        "told": len(truth) - len(missed),
        "missed": missed,
        "beside": {name: rows for name, rows in beside.items() if rows},
        "sound": len(sound),
        "alarms": {name: rows for name, rows in sound.items() if rows},
        "mended": mended,
        "healed": len(healed),
        "not_healed": sorted(name for name in said if name not in healed),
    }


def main() -> None:
    if len(sys.argv) > 1:
        kind = "planted" if (HERE / "planted" / f"{sys.argv[1]}.sh").exists() else "sound"
        plan, rows = told(sys.argv[1], kind)
        for row in rows:
            print(f"{row.state:8}{row.id:18}{row.line:4}  {row.says}   [{row.fix}]")
        print(corrected(plan.script.text, [row for row in rows if row.state in MENDED]))
        return
    for name, value in score().items():
        print(f"{name}: {value}" if not isinstance(value, dict) else f"{name}:")
        for one, rows in value.items() if isinstance(value, dict) else ():
            print(f"   {one}: {rows}")


if __name__ == "__main__":
    main()
