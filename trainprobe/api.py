"""The one import surface for plugin authors. What stands here keeps its name and its meaning;
nothing else is promised.

A cause is a `Cause` value; its functions get a `Scene`: the facts as one
suspect group sees them.
A collector is a `Collector` value; its look gets a `JobView` and returns a `LookResult`, or
`refused(outcome, reason)`, and its parser reads `Evidence` with `fields`.
An output format is a `Format` value; its functions get a `Report` and a `Layout`.
A probe needs no import at all: it is a program (docs/probe-protocol.md).
"""

from __future__ import annotations

from trainprobe import facts as _facts
from trainprobe.causes.cause import Cause, Mode
from trainprobe.causes.scene import Scene
from trainprobe.collect.collector import Collector, JobView
from trainprobe.collect.look_results import LookResult, refused
from trainprobe.collect.members import Member
from trainprobe.facts import *  # noqa: F403 - every type of fact, and nothing else (its __all__)
from trainprobe.facts import Facts, read
from trainprobe.model import fields
from trainprobe.model.diagnosis import Family, Fix, Link, Report, Weighing
from trainprobe.model.evidence import Evidence
from trainprobe.report.format import Format, Layout, of_reports
from trainprobe.waits import SuspectGroup

__all__ = [
    "Cause",
    "Collector",
    "Evidence",
    "Facts",
    "Family",
    "Fix",
    "Format",
    "JobView",
    "Layout",
    "Link",
    "LookResult",
    "Member",
    "Mode",
    "Report",
    "Scene",
    "SuspectGroup",
    "Weighing",
    "fields",
    "of_reports",
    "read",
    "refused",
]
__all__ += [name for name in _facts.__all__ if name not in __all__]
