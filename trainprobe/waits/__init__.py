"""The wait-for graph: who waits for whom, and who is at the end of it."""

from trainprobe.facts import Facts
from trainprobe.waits.groups import failing_rungs, is_hung, outgrown_rungs, suspect_groups
from trainprobe.waits.ladder import ladder_situation
from trainprobe.waits.log_verdicts import logged_situation
from trainprobe.waits.process_groups import live_situation
from trainprobe.waits.readiness_report import ready_situation
from trainprobe.waits.situation import Situation, settled
from trainprobe.waits.standings import Standing, standings
from trainprobe.waits.suspects import Divergence, SuspectGroup

__all__ = [
    "Divergence",
    "Situation",
    "Standing",
    "SuspectGroup",
    "failing_rungs",
    "is_hung",
    "outgrown_rungs",
    "settled",
    "situation_of",
    "standings",
    "suspect_groups",
]


def situation_of(facts: Facts) -> Situation:
    """How the job stands by the evidence that tells most.

    Logs that name the first failure come before dumps; other logs come after dumps that name
    suspects, for these know every rank's last call.
    """
    logged, live = logged_situation(facts), live_situation(facts)
    if logged is not None and live is not None:
        return live if live.groups and not logged.origin else logged
    return logged or live or ready_situation(facts) or ladder_situation(facts)
