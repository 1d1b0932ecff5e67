"""Processes of an earlier run still live and hold ports, memory, locks or GPUs.

A run that was ended by closing the terminal, or a launcher that was killed before its workers, leaves them behind. The next run finds its port
taken, its memory or GPU full, or its cache locked. Where a loop, a service or a supervisor starts them again, that has to end first.

It is recognised by processes of the same program whose parent is gone, or that something without a terminal keeps alive. It is named where what this
run failed of is what they hold, or where they hold so much that the next run will feel it; otherwise they are a warning. A run in an open
terminal or in a scheduler's step is another run, and no left-over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.earlier_runs import in_the_way, weigh_all, weigh_failure
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, said
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, Leftover, LeftoverLook, Restarter
from trainprobe.facts.leftover_words import commands, look_command, name_of, restarted_by, sum_of
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

CHECK = "host.leftovers"
TAKEN = r"EADDRINUSE|[Aa]ddress already in use|CUDA out of memory|could not be acquired"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    if facts.of(Leftover):
        yield from weigh_failure(scene) if group.cell else weigh_all(scene)
        return
    taken = said(scene, TAKEN)
    found = scene.checks(CHECK) if facts.one(LeftoverLook) is None else ()
    if found and taken is not None:
        # Not a level that may or may not bite: the processes are there, and what they usually hold is taken.
        yield weighing(13, "environment-and-limits", found[0].says.rstrip("."), *found)
        yield weighing(10, "suspects-log", f"What they may hold is taken: {short(taken.text)}", taken.fact)
    elif found:
        yield from checked(scene, CHECK)
    passed = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if passed:
        yield weighing(-26, "environment-and-limits", "No process of an earlier run was found", *passed)


def _known(facts: Facts, group: SuspectGroup) -> tuple[Leftover, ...]:
    """The processes of earlier runs. Those of which only the folder is known are no doubt where one of their run holds what this run failed of."""
    runs = {row.run for row in in_the_way(Scene(facts, group))}
    return tuple(replace(row, sure=row.sure or row.run in runs) for row in facts.of(Leftover))


def _pids(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    rows = facts.of(Leftover)
    if rows:
        return tuple(row.pid for row in rows)
    words = " ".join(advice(Scene(facts, group), CHECK))
    return tuple(int(number) for number in re.findall(r"\b\d{2,}\b", words))


def _summary(facts: Facts, group: SuspectGroup) -> str:
    rows, look = facts.of(Leftover), facts.one(LeftoverLook)
    if rows and look is not None:
        again = [restarted_by(one) for one in facts.of(Restarter)[:2]]
        taken = [one.says for one in sorted(_weigh(facts, group), key=lambda one: -one.points) if one.points > 0][:1]
        return sentence(
            "; ".join([f"An earlier run of {name_of(look)} still lives: {sum_of(rows)}", *again, *(f"{says[:1].lower()}{says[1:]}" for says in taken)])
        )
    check = next(iter(Scene(facts, group).checks(CHECK)), None)
    return sentence(check.says if check is not None else "Processes of an earlier run still live on this host")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene, rows, restarters = Scene(facts, group), _known(facts, group), facts.of(Restarter)
    pids = [str(pid) for pid in dict.fromkeys([*(one.pid for one in restarters if one.pid), *_pids(facts, group)])]
    look = f"ps -o pid,ppid,lstart,cmd -p {','.join(pids)}" if pids else "ps -eo pid,ppid,lstart,cmd --sort=start_time | grep python"
    doubtful = [row for row in rows if not row.sure]
    ends = commands(rows, restarters) if rows or restarters else (f"kill {' '.join(pids)}" if pids else "kill <PID>",)
    first = " first whoever starts them again, then them" if restarters and rows else " them"
    return (
        fix(scene, "See what they are", look),
        *([fix(scene, f"End{first}", *ends, risk="disruptive", verify=look)] if ends else []),
        *([fix(scene, "Look at those that only share the folder", look_command(doubtful))] if doubtful else []),
    )


CAUSE = readied(
    Cause(
        id="leftover-processes",
        title="Processes of an earlier run still live",
        means="Earlier runs still live on this host and hold ports, GPUs, memory or locks.",
        telling="Processes of the same script whose parent is gone or that something starts again, and that hold what this run needs.",
        modes=("check", "crash", "hang"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        pids=_pids,
        refines="port-in-use",
        accounts_for=("host-oom-killed", "gpu-memory-held-by-other", "cuda-oom", "file-lock-held", "rank-stuck", "user-exception", "rendezvous-incomplete"),
        would_settle="list the script's processes with their parents and start times: ps -eo pid,ppid,lstart,cmd",
    ),
    Signs(says=("still runs what an earlier job left", "still run what an earlier job left"), checks=("host.leftovers", "host.procstate")),
)
