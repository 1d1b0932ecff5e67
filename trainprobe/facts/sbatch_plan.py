"""What is right and wrong with a job's plan before it is submitted: the fact, and what a report
says of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts.table import Facts
from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class SbatchPlan(Fact):
    """A batch script as it was judged: `rows` of (check, state, line, sentence, fix), and the
    corrections as lines of a diff, none where nothing is to change.
    """

    script: str = ""
    rows: tuple[tuple[str, str, int, str, str], ...] = ()
    changes: tuple[str, ...] = ()


def told_of_script(facts: Facts) -> dict[str, object]:
    """What a report says of a batch script, beside the readiness of its checks; nothing where
    none was looked at.
    """
    plan = facts.one(SbatchPlan)
    if plan is None:
        return {}
    rows = [
        {"id": name, "state": state, "line": line, "says": says, "fix": fix}
        for name, state, line, says, fix in plan.rows
    ]
    return {"sbatch": {"script": plan.script, "rows": rows, "changes": list(plan.changes)}}
