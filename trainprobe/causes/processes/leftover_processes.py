"""Processes of an earlier run still live and hold ports, memory, locks or GPUs.

A run that was ended by closing the terminal, or a launcher that was killed before its workers, leaves them behind. The next run finds
its port taken, its GPU memory full, or its cache locked.

It is recognised by the host check, which looks for processes of the same script whose parent is gone, and weighs more when a port or
memory is indeed taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, said
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

CHECK = "host.leftovers"
TAKEN = r"EADDRINUSE|[Aa]ddress already in use|CUDA out of memory|could not be acquired"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    taken = said(scene, TAKEN)
    found = scene.checks(CHECK)
    if found and taken is not None:
        # Not a level that may or may not bite: the processes are there, and what they usually hold is taken.
        yield weighing(13, "environment-and-limits", found[0].says.rstrip("."), *found)
        yield weighing(10, "suspects-log", f"What they may hold is taken: {short(taken.text)}", taken.fact)
    else:
        yield from checked(scene, CHECK)
    passed = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if passed:
        yield weighing(-26, "environment-and-limits", "No process of an earlier run was found", *passed)


def _pids(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    words = " ".join(advice(Scene(facts, group), CHECK))
    return tuple(int(number) for number in re.findall(r"\b\d{2,}\b", words))


def _summary(facts: Facts, group: SuspectGroup) -> str:
    check = next(iter(Scene(facts, group).checks(CHECK)), None)
    return sentence(check.says if check is not None else "Processes of an earlier run still live on this host")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    pids = [str(pid) for pid in _pids(facts, group)]
    look = f"ps -o pid,ppid,lstart,cmd -p {','.join(pids)}" if pids else "ps -eo pid,ppid,lstart,cmd --sort=start_time | grep python"
    return (
        fix(scene, "See what they are", look),
        fix(scene, "End them", f"kill {' '.join(pids)}" if pids else "kill PID", risk="disruptive", verify=look),
    )


CAUSE = Cause(
    id="leftover-processes",
    title="Processes of an earlier run still live",
    means="Earlier runs still live on this host and hold ports, GPUs, memory or locks.",
    telling="Processes of the same script whose parent is gone and that are older than this run.",
    modes=("check", "crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    pids=_pids,
    refines="port-in-use",
    would_settle="list the script's processes with their parents and start times: ps -eo pid,ppid,lstart,cmd",
)
