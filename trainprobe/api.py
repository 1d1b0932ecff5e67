"""The one import surface for plugin authors. What stands here keeps its name and its meaning; nothing else is promised.

A cause is a `Cause` value; its functions get `Facts` and the `SuspectGroup` that they speak about.
A probe needs no import at all: it is a program (docs/probe-protocol.md).
"""

from __future__ import annotations

from trainprobe import facts as _facts
from trainprobe.causes.cause import Cause, Mode
from trainprobe.facts import *  # noqa: F403 - every type of fact, and nothing else (its __all__)
from trainprobe.facts import Facts, read
from trainprobe.model.diagnosis import Family, Fix, Link, Weighing
from trainprobe.waits import SuspectGroup

__all__ = ["Cause", "Facts", "Family", "Fix", "Link", "Mode", "SuspectGroup", "Weighing", "read"]
__all__ += [name for name in _facts.__all__ if name not in __all__]
