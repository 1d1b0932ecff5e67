"""The ladder: finds the probes, plans the rungs, launches their ranks, watches them, and writes down what it saw."""

from trainprobe.ladder.climb import climb
from trainprobe.ladder.plan import Plan
from trainprobe.ladder.planning import make_plan
from trainprobe.system.interruption import Interrupted

__all__ = ["Interrupted", "Plan", "climb", "make_plan"]
