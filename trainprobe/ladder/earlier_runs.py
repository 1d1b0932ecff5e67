"""Before the first cell: is an earlier run of the user's command still there?"""

from __future__ import annotations

from trainprobe.case import Case
from trainprobe.collect.leftovers import Asked, look_at_leftovers
from trainprobe.ladder.plan import Plan


def look_for_earlier_runs(plan: Plan, case: Case) -> None:
    """Record one `leftovers` where the plan has a command."""
    if plan.form != "none":
        script = plan.script.path if plan.script is not None else ""
        look_at_leftovers(case, Asked(plan.argv, plan.cwd, script, plan.environ, plan.gpus_seen))
