"""The wait-for graph: who waits for whom, and who is at the end of it."""

from trainprobe.waits.groups import failing_rungs, is_hung, outgrown_rungs, suspect_groups
from trainprobe.waits.live import LiveView, live_views
from trainprobe.waits.log_verdicts import LoggedView, logged_views
from trainprobe.waits.standings import Standing, standings
from trainprobe.waits.suspects import Divergence, SuspectGroup

__all__ = [
    "Divergence",
    "LiveView",
    "LoggedView",
    "Standing",
    "SuspectGroup",
    "failing_rungs",
    "is_hung",
    "live_views",
    "logged_views",
    "outgrown_rungs",
    "standings",
    "suspect_groups",
]
