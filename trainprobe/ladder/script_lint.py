"""Before the first cell: what does lint say of the user's script?"""

from __future__ import annotations

import os

from trainprobe.case import Case
from trainprobe.collect.collectors.lint import DEADLINE_S, LintRequest, look_with_lint
from trainprobe.ladder.cells import RANKS
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.probes import USER_SCRIPT


def lint_the_script(plan: Plan, case: Case, left_s: float) -> None:
    """Record one `lint` where the plan runs a script that is a file, in at most `left_s`
    seconds. Neither where somebody left it or the command out.
    """
    path = script_of(plan)
    wanted = any(rung.spec.name == USER_SCRIPT and rung.unmet != "asked" for rung in plan.rungs)
    if plan.lint and path and wanted and left_s > 0:
        there = "datasets" in (
            *plan.interpreter.installed,
            *plan.imports,
        )  # the only package whose version lint asks for
        counted = plan.form == "launch" or any(
            RANKS in word for word in plan.argv
        )  # otherwise the launcher knows how many there will be
        asked = LintRequest(
            path, plan.cwd, plan.interpreter.path if there else "", plan.world if counted else None
        )
        look_with_lint(case, asked, deadline_s=min(DEADLINE_S, left_s))


def script_of(plan: Plan) -> str:
    """The path of the script, also of a module beneath the working folder that a command runs
    with `-m`; empty where there is none.
    """
    if plan.script is not None:
        return plan.script.path
    for option, name in zip(plan.argv, plan.argv[1:], strict=False):
        stem = os.path.join(plan.cwd, *name.split("."))
        for path in (f"{stem}.py", os.path.join(stem, "__main__.py")):
            if (
                option in ("-m", "--module")
                and name.isascii()
                and name.replace(".", "").isidentifier()
                and os.path.isfile(path)
            ):
                return path
    return ""
