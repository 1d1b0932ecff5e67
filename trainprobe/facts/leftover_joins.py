"""One host check for earlier runs: the look of the whole machine stands for what the host probe
saw of it.
"""

from __future__ import annotations

from trainprobe.collect.collectors.leftovers import Leftover, LeftoverLook, OtherRun, Restarter
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.leftover_names import commands, look_command, name_of, restarted_by, sum_of
from trainprobe.model.facts import Fact

CHECK = "host.leftovers"
OTHER_CHECK = "host.other-run"


def join_leftovers(facts: list[Fact]) -> list[Fact]:
    """The whole look for earlier runs stands for the host probe's own check of the same, which
    knows less.
    """
    looks = [fact for fact in facts if isinstance(fact, LeftoverLook)]
    if not looks:
        return facts
    evidence, host = looks[-1].evidence, "host"  # of a climb that was taken up again the last look
    facts = [
        fact
        for fact in facts
        if not isinstance(fact, (LeftoverLook, Leftover, Restarter, OtherRun))
        or fact.evidence == evidence
    ]
    rows = [fact for fact in facts if isinstance(fact, Leftover)]
    restarters = [fact for fact in facts if isinstance(fact, Restarter)]
    others = [fact for fact in facts if isinstance(fact, OtherRun)]
    checks = [
        HostCheck(
            evidence,
            name=CHECK,
            status="ok",
            says=f"No process of an earlier run of {name_of(looks[-1])} is left.",
            probe=host,
        )
    ]
    if rows or restarters:
        words = "; ".join(
            [*([sum_of(rows)] if rows else []), *(restarted_by(one) for one in restarters[:2])]
        )
        says = f"An earlier run of {name_of(looks[-1])} still lives: {words}."
        checks = [
            HostCheck(
                evidence,
                name=CHECK,
                status="warn",
                says=says,
                fix="; ".join(commands(rows, restarters)) or look_command(rows),
                probe=host,
            )
        ]
    if others:
        says = (
            f"Another run of {name_of(looks[-1])} is live (pid {others[0].pid}): {others[0].why}."
            " It is no left-over."
        )
        checks.append(
            HostCheck(
                evidence,
                name=OTHER_CHECK,
                status="warn",
                says=says,
                fix=f"trainprobe attach {others[0].pid}",
                probe=host,
            )
        )
    return [
        fact for fact in facts if not (isinstance(fact, HostCheck) and fact.name == CHECK)
    ] + list(checks)
