"""The import of a module does not come back.

A module that downloads, waits for a lock, builds an extension or sleeps at its top level holds up
everybody who imports it. No rank ever reaches the first collective.

It is recognised by the import probe, where that module alone did not finish before its deadline,
and by a stack that stands in a module's top level, or in Python's import lock, in all looks. A
finished import of the same module rules it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import imported, others_wait
from trainprobe.causes.commands import live_pid
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, size, subject, verb
from trainprobe.causes.scene import Scene, Weighings, user_frame, weighing
from trainprobe.facts import ImportTried, MainThread
from trainprobe.waits.dump_hangs import only_dumps
from trainprobe.waits.import_lock_waits import LONG_S, ImportLockWait, import_lock_wait

WAITING = ("import-lock", "sleep", "net-io", "lock", "file-io", "child-wait")


def _tried(scene: Scene) -> tuple[ImportTried, ...]:
    return scene.facts.of(ImportTried) if scene.group.probe == "import_memory" else ()


def _slow(scene: Scene) -> tuple[ImportTried, ...]:
    """Imports that timed out; one that hangs alone before those that merely import it."""
    late = [fact for fact in _tried(scene) if fact.outcome == "timed_out"]
    return tuple(sorted(late, key=lambda fact: fact.how != "alone"))


def _importing(scene: Scene) -> tuple[MainThread, ...]:
    threads = scene.threads(scene.suspects)
    return tuple(thread for thread in threads if thread.importing or thread.leaf == "import-lock")


def _weigh(scene: Scene) -> Weighings:
    for tried in _slow(scene)[:1]:
        took = f" in {tried.took_s:.0f} s" if tried.took_s is not None else ""
        if tried.how == "alone":
            text = f"`import {tried.module}` alone, in a fresh process, did not come back{took}"
            yield weighing(26, "probe-outcome", text, tried)
        else:
            text = f"`import {tried.module}` on all ranks at once did not come back{took}"
            yield weighing(10, "probe-outcome", text, tried)
        if tried.compilers:
            says = (
                f"It was building: {tried.compilers} compilers ran below it, with"
                f" {size(tried.build_bytes)}"
            )
            yield weighing(3, "process-state-and-locks", says, tried)
        frame = user_frame(tried.frames) or next(iter(reversed(tried.frames)), None)
        if frame is not None:
            yield weighing(6, "suspects-stack", f"It stands at {frame.where}", tried)
    held = _held(scene)
    if held is not None:
        says = (
            f"{held.holder} got the import lock and has not released it, which"
            f" {ranks_say(held.waiters, capital=False)} waited for, {held.held_s:.0f} s or more"
        )
        points = 13 if held.held_s >= LONG_S else 3
        yield weighing(
            points,
            "suspects-log",
            says[:1].upper() + says[1:],
            held.got,
            *held.waiting,
            *held.gave_up,
        )
    done = [fact for fact in _tried(scene) if fact.outcome == "passed"]
    if _tried(scene) and len(done) == len(_tried(scene)):
        yield weighing(-26, "probe-outcome", f"All {len(done)} imports came back", *done)
    # one look, and it was written because all stood still
    saved = scene.live is not None and only_dumps(scene.live)
    still = [
        thread
        for thread in _importing(scene)
        if thread.moved is False or (saved and thread.leaf in WAITING)
    ]
    if still:
        who = [thread.rank or 0 for thread in still]
        name = imported(scene, still[0]) or "a module"
        text = (
            f"{ranks_say(who)} {verb(who, 'stands', 'stand')} inside the import of {name} in all"
            " looks"
        )
        yield weighing(13, "suspects-stack", text, *still)
        if still[0].leaf in WAITING:
            text = f"It waits there ({still[0].leaf}), it does not compute"
            yield weighing(6, "process-state-and-locks", text, still[0])
        yield from others_wait(scene)
    elif any(thread.moved for thread in _importing(scene)):
        yield weighing(
            -10, "suspects-stack", "The import moves on between the looks", *_importing(scene)
        )


def _held(scene: Scene) -> ImportLockWait | None:
    """The import lock that a rank took and never released, by `LOCK:` lines."""
    reported = import_lock_wait(scene.facts, scene.cell)
    return (
        reported if reported is not None and reported.got is not None and reported.waiters else None
    )


def _name(scene: Scene) -> str:
    tried, threads = _slow(scene), _importing(scene)
    return tried[0].module if tried else imported(scene, threads[0]) if threads else ""


def _place(scene: Scene) -> str:
    frames = next((tried.frames for tried in _slow(scene) if tried.frames), ())
    frame = user_frame(frames)
    if frame is not None:
        return frame.where
    return next((thread.where for thread in _importing(scene) if thread.where), "")


def _ranks(scene: Scene) -> tuple[int, ...]:
    """Ranks inside the import while others are past it; none if the import always hangs."""
    held = _held(scene)
    if held is not None and held.holder_rank is not None:
        return (held.holder_rank,)
    inside = tuple(sorted({thread.rank for thread in _importing(scene) if thread.rank is not None}))
    return inside if inside and not _tried(scene) and len(inside) < len(scene.world) else ()


def _summary(scene: Scene) -> str:
    place = _place(scene)
    took = next((fact.took_s for fact in _slow(scene) if fact.took_s is not None), None)
    late = f" after {took:.0f} s" if took is not None else ""
    what = f"the import of {_name(scene) or 'a module'}"
    held = _held(scene)
    if held is not None and not _importing(scene):
        return (
            f"{held.holder[:1].upper()}{held.holder[1:]} holds the import lock {held.path} and has"
            " not come back from what it imports"
        )
    if inside := _ranks(scene):
        return (
            f"{subject(scene, inside)} {verb(inside, 'stands', 'stand')} in"
            f" {what}{f' at {place}' if place else ''}, which does not come back"
        )
    builds = ", and it builds an extension" if any(fact.compilers for fact in _slow(scene)) else ""
    return (
        f"{what[:1].upper()}{what[1:]} has not come"
        f" back{late}{builds}{f'; it stands at {place}' if place else ''}"
    )


BUILD = """
Build it once, before the launch
    {python} -c 'import {name}'   (the build is then found in TORCH_EXTENSIONS_DIR)
    verify: {check}
Give the rung more time, where the build is merely slow
    TRAINPROBE_IMPORT_TIMEOUT_S=300
"""
FIXES = """
See where the import stands
    {look}
    {open}
    verify: {check}
Take the waiting out of the import
    move downloads, builds and locks from the module's top level into a function
    verify: {check}
"""


def _fixes(scene: Scene) -> Fixes:
    python, name = scene.plan.interpreter_path or "python", _name(scene) or "MODULE"
    check = f"timeout 60 {python} -c 'import {name}'"
    if any(fact.compilers for fact in _slow(scene)):
        return fixes(BUILD, python=python, name=name, check=check)
    held, place = _held(scene), _place(scene)
    look = (
        f"timeout 60 {python} -X faulthandler -c 'import faulthandler;"
        f" faulthandler.dump_traceback_later(50); import {name}'"
    )
    if scene.live is not None:
        pid = next((thread.pid for thread in _importing(scene)), live_pid(scene))
        look = f"py-spy dump --pid {pid}   (all threads: which one holds the import up?)"
    elif held is not None:
        look = f"trainprobe attach {held.holder_pid}   (on its host, while it lives)"
    return fixes(FIXES, look=look, open=f"open {place}" if place else "", check=check)


CAUSE = Cause(
    id="import-hang",
    title="An import does not come back",
    modes=("hang", "check", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=_ranks,
    pids=lambda scene: tuple(thread.pid for thread in _importing(scene)),
    would_settle="import that module alone with a time limit and faulthandler",
    refines="rank-stuck",
)
