"""The clock of a node is wrong.

Time synchronisation is not running or has lost its server, or a virtual machine was suspended.
Error files and logs of several nodes are put in order by their times, so the first failure is
sought on the wrong rank; files of a shared file system seem to lie in the future, builds and caches
are made anew or never, credentials expire, and timeouts that are given as a time of day end at once
or never.

It is recognised by asking every node for its time at the same moment: one is off by more than the
exchange itself can explain, while the others agree.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody

CAUSE = Cause(
    id="clock-skew",
    title="The clock of a node is wrong",
    would_settle="date +%s.%N on each node at once; chronyc tracking",
    modes=("check",),
    ranks=nobody,
    ready=ReadySigns(
        says=("has a clock that is wrong", "have clocks that are wrong"),
        checks=("host.skew", "host.clock"),
        admin=("chronyc tracking; systemctl status chronyd", "chronyc makestep"),
    ),
)
