"""Does a failure come of what an earlier run still holds? Each way in which it may, weighed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.gpu_memory import shortage
from trainprobe.causes.host_memory import REFUSED, killed, proof
from trainprobe.causes.locks_wanted import held_by_others, lock_waits, wanted_path
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import said
from trainprobe.causes.words import listed, short
from trainprobe.facts import Leftover
from trainprobe.model.diagnosis import Family, Weighing
from trainprobe.waits.leftovers import Taken, taken

PORT_TAKEN = r"EADDRINUSE|[Aa]ddress already in use|\b[Ee]rrno:? 98\b|port: \d{1,5} already in use"
PORT = re.compile(r"\bport:? `?(\d{2,5})\b|:(\d{4,5})\b|', (\d{2,5})\)")
LOCK_PATH = r"file lock '(.{1,400}?)' could not be acquired"
LOCK_REFUSED = r"filelock\.(?:_error\.)?Timeout|unable to lock file|database is locked|Resource temporarily unavailable"
MOST_OF_IT = 0.3  # of the memory: then the run would have had it but for them
SOME_OF_IT = 0.2
FAMILIES: dict[str, Family] = {"port": "network", "memory": "host-pressure", "cpu": "host-pressure", "gpu": "gpu", "lock": "process-state-and-locks"}


def weigh_all(scene: Scene) -> Iterator[Weighing]:
    """Everything that earlier runs hold above the levels that matter, where that itself is the trouble."""
    for one in taken(scene.facts):
        yield weighing(26 if one.share is None or one.share >= SOME_OF_IT else 13, FAMILIES[one.what], one.says, *one.by)


def weigh_failure(scene: Scene) -> Iterator[Weighing]:
    """What the suspects failed of or wait for, where an earlier run holds just that."""
    rows = scene.facts.of(Leftover)
    by_what = {one.what: one for one in taken(scene.facts)}
    yield from _port(scene, rows)
    yield from _memory(scene, by_what.get("memory"))
    yield from _gpu(scene, rows, by_what.get("gpu"))
    yield from _lock(scene, rows)


def in_the_way(scene: Scene) -> tuple[Leftover, ...]:
    """Those that hold what one process alone can have, and what this run needs or failed of: a port, a lock."""
    found: list[Leftover] = []
    if scene.group.cell:
        found += [*_listening(scene, scene.facts.of(Leftover)), *_locking(scene, scene.facts.of(Leftover))]
    else:
        found += [row for one in taken(scene.facts) if one.what in ("port", "lock") for row in one.by]
    return tuple({row.pid: row for row in found}.values())


def _listening(scene: Scene, rows: tuple[Leftover, ...]) -> list[Leftover]:
    heard = said(scene, PORT_TAKEN)
    if heard is None:
        return []
    port = _port_in(heard.text)
    return [row for row in rows if (port in row.ports if port is not None else row.ports)]


def _port_in(text: str) -> int | None:
    return next((int(group) for match in PORT.finditer(text) for group in match.groups() if group), None)


def _port(scene: Scene, rows: tuple[Leftover, ...]) -> Iterator[Weighing]:
    heard = said(scene, PORT_TAKEN)
    if heard is None:
        return
    port, listening = _port_in(heard.text), _listening(scene, rows)
    if listening:
        where = f"port {port}" if port is not None else f"port {listed([str(number) for number in listening[0].ports])}"
        points = 26 if port is not None else 13
        yield weighing(points, "environment-and-limits", f"Pid {listening[0].pid} of an earlier run listens on {where}", *listening)
        yield weighing(13, "suspects-log", f"This run could not have a port: {short(heard.text)}", heard.fact)


def _memory(scene: Scene, held: Taken | None) -> Iterator[Weighing]:
    short_of_it = bool(killed(scene)) or proof(scene) is not None or said(scene, REFUSED) is not None
    if held is not None and held.share is not None and short_of_it:
        yield weighing(26 if held.share >= MOST_OF_IT else 6, "host-pressure", held.says, *held.by)


def _gpu(scene: Scene, rows: tuple[Leftover, ...], held: Taken | None) -> Iterator[Weighing]:
    found = shortage(scene)
    if found is None:
        return
    named = {pid for pid, _ in found.numbers.named}
    theirs = [row for row in rows if row.pid in named]
    if theirs:
        yield weighing(26, "gpu", f"The allocator names pid {theirs[0].pid} of an earlier run among those that hold the GPU", *theirs)
    elif held is not None:
        yield weighing(26 if (held.share or 0.0) >= MOST_OF_IT else 6, "gpu", held.says, *held.by)


def _locking(scene: Scene, rows: tuple[Leftover, ...]) -> list[Leftover]:
    pids = {wait.holder_pid for wait in lock_waits(scene)} | {lock.pid for lock in held_by_others(scene)}
    wanted = _wanted_locks(scene)
    return [row for row in rows if row.pid in pids or wanted & set(row.locks)]


def _wanted_locks(scene: Scene) -> set[str]:
    refused = said(scene, LOCK_PATH)
    return {path for path in (wanted_path(scene), refused.match.group(1) if refused is not None else "") if path}


def _lock(scene: Scene, rows: tuple[Leftover, ...]) -> Iterator[Weighing]:
    pids = {row.pid for row in rows}
    waits = [wait for wait in lock_waits(scene) if wait.holder_pid in pids]
    held = [lock for lock in held_by_others(scene) if lock.pid in pids]
    refused = said(scene, LOCK_PATH) or said(scene, LOCK_REFUSED)
    wanted = _wanted_locks(scene)
    theirs = [row for row in rows if wanted & set(row.locks)]
    if waits or held:
        pid = waits[0].holder_pid if waits else held[0].pid
        yield weighing(26, "process-state-and-locks", f"Pid {pid} of an earlier run holds the lock that this run waits for", *waits, *held)
    elif theirs:
        path = min(wanted & set(theirs[0].locks))
        yield weighing(26, "process-state-and-locks", f"Pid {theirs[0].pid} of an earlier run holds the lock on {path}", *theirs)
    elif refused is not None and any(row.locks for row in rows):
        yield weighing(6, "process-state-and-locks", "An earlier run holds locks, and this run could not have one", *(row for row in rows if row.locks))
