"""Processes of an earlier run still live and hold ports, memory, locks or GPUs.

A run that was ended by closing the terminal, or a launcher that was killed before its workers,
leaves them behind. The next run finds its port taken, its memory or GPU full, or its cache locked.
Where a loop, a service or a supervisor starts them again, that has to end first.

It is recognised by processes of the same program whose parent is gone, or that something without a
terminal keeps alive. It is named where what this run failed of is what they hold, or where they
hold so much that the next run will feel it; otherwise they are a warning. A run in an open terminal
or in a scheduler's step is another run, and no left-over.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.host_memory import REFUSED, killed, proof
from trainprobe.causes.locks_wanted import held_by_others, lock_waits, wanted_path
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import (
    advice,
    checked,
    quote,
    quote_after,
    statement,
    weigh_statement,
)
from trainprobe.facts import Leftover, LeftoverLook, Restarter
from trainprobe.facts.leftover_names import commands, look_command, name_of, restarted_by, sum_of
from trainprobe.model.diagnosis import Family
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message
from trainprobe.waits.leftovers import Taken, taken

CHECK = "host.leftovers"
TAKEN = message("leftover-processes.taken")
LEFT = message("leftover-processes.left")


def _weigh(scene: Scene) -> Weighings:
    if scene.facts.of(Leftover):
        yield from weigh_failure(scene) if scene.cell else weigh_all(scene)
        return
    yield from weigh_statement(scene, LEFT)
    taken = statement(scene, TAKEN)
    found = scene.checks(CHECK) if scene.facts.one(LeftoverLook) is None else ()
    if found and taken is not None:
        # Not a level that may or may not bite: the processes are there, and what they usually hold
        # is taken.
        yield weighing(13, "environment-and-limits", found[0].says.rstrip("."), *found)
        yield quote(10, "What they may hold is taken", taken)
    elif found:
        yield from checked(scene, CHECK)
    passed = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if passed:
        yield weighing(
            -26, "environment-and-limits", "No process of an earlier run was found", *passed
        )


def _known(scene: Scene) -> tuple[Leftover, ...]:
    """The processes of earlier runs. Those of which only the folder is known are no doubt where
    one of their run holds what this run failed of.
    """
    runs = {row.run for row in in_the_way(scene)}
    return tuple(replace(row, sure=row.sure or row.run in runs) for row in scene.facts.of(Leftover))


def _pids(scene: Scene) -> tuple[int, ...]:
    rows = scene.facts.of(Leftover)
    if rows:
        return tuple(row.pid for row in rows)
    words = " ".join(advice(scene, CHECK))
    return tuple(int(number) for number in re.findall(r"\b\d{2,}\b", words))


def _summary(scene: Scene) -> str:
    rows, look = scene.facts.of(Leftover), scene.facts.one(LeftoverLook)
    if rows and look is not None:
        again = [restarted_by(one) for one in scene.facts.of(Restarter)[:2]]
        taken = [
            one.says for one in sorted(_weigh(scene), key=lambda one: -one.points) if one.points > 0
        ][:1]
        return "; ".join(
            [
                f"An earlier run of {name_of(look)} still lives: {sum_of(rows)}",
                *again,
                *(f"{says[:1].lower()}{says[1:]}" for says in taken),
            ]
        )
    check, left = scene.failed_check(CHECK), statement(scene, LEFT)
    if check is None and left is not None:
        return f"Something of an earlier run is still there{quote_after(left)}"
    return (
        check.says if check is not None else "Processes of an earlier run still live on this host"
    )


def _fixes(scene: Scene) -> Fixes:
    rows, restarters = _known(scene), scene.facts.of(Restarter)
    pids = [
        str(pid)
        for pid in dict.fromkeys([*(one.pid for one in restarters if one.pid), *_pids(scene)])
    ]
    look = "ps -eo pid,ppid,lstart,cmd --sort=start_time | grep python"
    if pids:
        look = f"ps -o pid,ppid,lstart,cmd -p {','.join(pids)}"
    doubtful = [row for row in rows if not row.sure]
    ends = (
        commands(rows, restarters)
        if rows or restarters
        else (f"kill {' '.join(pids)}" if pids else "kill <PID>",)
    )
    first = " first whoever starts them again, then them" if restarters and rows else " them"
    return (
        fix("See what they are", look),
        *([fix(f"End{first}", *ends, disruptive=True, verify=look)] if ends else []),
        *(
            [fix("Look at those that only share the folder", look_command(doubtful))]
            if doubtful
            else []
        ),
    )


# Does a failure come of what an earlier run still holds? Each way in which it may, weighed.
PORT_TAKEN = message("leftover-processes.port-taken")
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|:(\d{4,5})\b|', (\d{2,5})\)")
LOCK_PATH = r"file lock '(.{1,400}?)' could not be acquired"
LOCK_REFUSED = message("leftover-processes.lock-refused")
MOST_OF_IT = 0.3  # of the memory: then the run would have had it but for them
SOME_OF_IT = 0.2
FAMILIES: dict[str, Family] = {
    "port": "network",
    "memory": "host-pressure",
    "cpu": "host-pressure",
    "gpu": "gpu",
    "lock": "process-state-and-locks",
}


def weigh_all(scene: Scene) -> Weighings:
    """What earlier runs hold above the levels that matter."""
    for one in taken(scene.facts):
        yield weighing(
            26 if one.share is None or one.share >= SOME_OF_IT else 13,
            FAMILIES[one.what],
            one.says,
            *one.by,
        )


def weigh_failure(scene: Scene) -> Weighings:
    """What the suspects failed of or wait for, where an earlier run holds just that."""
    rows = scene.facts.of(Leftover)
    by_what = {one.what: one for one in taken(scene.facts)}
    yield from _port(scene, rows)
    yield from _memory(scene, by_what.get("memory"))
    yield from _gpu(scene, rows, by_what.get("gpu"))
    yield from _lock(scene, rows)


def in_the_way(scene: Scene) -> tuple[Leftover, ...]:
    """Earlier runs that hold an exclusive port or lock that this run needs."""
    found: list[Leftover] = []
    if scene.cell:
        found += [
            *_listening(scene, scene.facts.of(Leftover)),
            *_locking(scene, scene.facts.of(Leftover)),
        ]
    else:
        found += [
            row for one in taken(scene.facts) if one.what in ("port", "lock") for row in one.by
        ]
    return tuple({row.pid: row for row in found}.values())


def _listening(scene: Scene, rows: tuple[Leftover, ...]) -> list[Leftover]:
    found = statement(scene, PORT_TAKEN)
    if found is None:
        return []
    port = _port_in(found.text)
    return [row for row in rows if (port in row.ports if port is not None else row.ports)]


def _port_in(text: str) -> int | None:
    return first_found(
        int(group) for match in PORT.finditer(text) for group in match.groups() if group
    )


def _port(scene: Scene, rows: tuple[Leftover, ...]) -> Weighings:
    found = statement(scene, PORT_TAKEN)
    if found is None:
        return
    port, listening = _port_in(found.text), _listening(scene, rows)
    if listening:
        where = (
            f"port {port}"
            if port is not None
            else f"port {and_list([str(number) for number in listening[0].ports])}"
        )
        points = 26 if port is not None else 13
        says = f"Pid {listening[0].pid} of an earlier run listens on {where}"
        yield weighing(points, "environment-and-limits", says, *listening)
        yield quote(13, "This run could not have a port", found)


def _memory(scene: Scene, held: Taken | None) -> Weighings:
    short_of_it = (
        bool(killed(scene)) or proof(scene) is not None or statement(scene, REFUSED) is not None
    )
    if held is not None and held.share is not None and short_of_it:
        yield weighing(26 if held.share >= MOST_OF_IT else 6, "host-pressure", held.says, *held.by)


def _gpu(scene: Scene, rows: tuple[Leftover, ...], held: Taken | None) -> Weighings:
    found = shortage(scene)
    if found is None:
        return
    named = {pid for pid, _ in found.numbers.named}
    theirs = [row for row in rows if row.pid in named]
    if theirs:
        says = (
            f"The allocator names pid {theirs[0].pid} of an earlier run among those that hold"
            " the GPU"
        )
        yield weighing(26, "gpu", says, *theirs)
    elif held is not None:
        yield weighing(26 if (held.share or 0.0) >= MOST_OF_IT else 6, "gpu", held.says, *held.by)


def _locking(scene: Scene, rows: tuple[Leftover, ...]) -> list[Leftover]:
    pids = {wait.holder_pid for wait in lock_waits(scene)} | {
        lock.pid for lock in held_by_others(scene)
    }
    wanted = _wanted_locks(scene)
    return [row for row in rows if row.pid in pids or wanted & set(row.locks)]


def _wanted_locks(scene: Scene) -> set[str]:
    refused = statement(scene, LOCK_PATH)
    return {
        path
        for path in (wanted_path(scene), refused.match.group(1) if refused is not None else "")
        if path
    }


def _lock(scene: Scene, rows: tuple[Leftover, ...]) -> Weighings:
    pids = {row.pid for row in rows}
    waits = [wait for wait in lock_waits(scene) if wait.holder_pid in pids]
    held = [lock for lock in held_by_others(scene) if lock.pid in pids]
    refused = statement(scene, LOCK_PATH) or statement(scene, LOCK_REFUSED)
    wanted = _wanted_locks(scene)
    theirs = [row for row in rows if wanted & set(row.locks)]
    if waits or held:
        pid = waits[0].holder_pid if waits else held[0].pid
        says = f"Pid {pid} of an earlier run holds the lock that this run waits for"
        yield weighing(26, "process-state-and-locks", says, *waits, *held)
    elif theirs:
        path = min(wanted & set(theirs[0].locks))
        says = f"Pid {theirs[0].pid} of an earlier run holds the lock on {path}"
        yield weighing(26, "process-state-and-locks", says, *theirs)
    elif refused is not None and any(row.locks for row in rows):
        says = "An earlier run holds locks, and this run could not have one"
        yield weighing(6, "process-state-and-locks", says, *(row for row in rows if row.locks))


CAUSE = Cause(
    id="leftover-processes",
    title="Processes of an earlier run still live",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    pids=_pids,
    refines="port-in-use",
    accounts_for=(
        "host-oom-killed",
        "gpu-memory-held-by-other",
        "cuda-oom",
        "file-lock-held",
        "rank-stuck",
        "user-exception",
        "rendezvous-incomplete",
    ),
    would_settle=(
        "list the script's processes with their parents and start times: ps -eo pid,ppid,lstart,cmd"
    ),
    ready=ReadySigns(
        says=("still runs what an earlier job left", "still run what an earlier job left"),
        checks=("host.leftovers", "host.procstate"),
    ),
)
