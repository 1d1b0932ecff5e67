"""A process waits for the lock of an extension build that nobody works on any more.

Extensions that are built when first used (`torch.utils.cpp_extension.load`) are guarded by a file
`lock` in their build folder. A build that was killed leaves it behind, and every later start waits
for it, silently, for ever.

It is recognised by a stack in the wait for a build's lock while no compiler runs below any rank.
Where a compiler runs, the build goes on and `rank-compiling` says it better. A folder that other
hosts write to may hold a lock of theirs; the age of the lock file tells.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import ends, who
from trainprobe.causes.phrases import Fixes, fix, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.software.rank_compiling import BUILDER, before_a_build, compilers
from trainprobe.causes.statements import last_line, quote_after, statement, weigh_statement
from trainprobe.facts import ImportTried, LogEvent, MainThread, ProcessState
from trainprobe.signatures.messages import message
from trainprobe.waits.dump_hangs import only_dumps

# torch/utils/cpp_extension.py prints it before it takes the lock, and the others once it builds.
BEGUN = r"as PyTorch extensions root"
BUILDS = message("extension-build-lock.builds")
LEFT = message("extension-build-lock.left")


def _waiting(scene: Scene) -> tuple[MainThread, ...]:
    """Threads that wait for a build's lock: a FileBaton, or a lock file of the build folder."""
    found = [
        thread
        for thread in (*ends(scene), *scene.threads(scene.suspects))
        if thread.leaf == "lock" and thread.moved is not True
    ]
    below = [
        thread
        for thread in found
        if any(BUILDER in frame.file for frame in thread.frames)
        or "torch_extensions" in thread.lock_path
    ]
    return tuple(dict.fromkeys([*below, *(thread for thread in found if thread.op == "FileBaton")]))


def builds(tried: ImportTried) -> bool:
    """Does this import load an extension that is built when it is first used?"""
    return any(BUILDER in frame.file for frame in tried.frames)


def _imports_waiting(scene: Scene) -> tuple[ImportTried, ...]:
    """Imports that timed out at a build's lock while no compiler ran."""
    tried = scene.facts.of(ImportTried) if scene.group.probe == "import_memory" else ()
    return tuple(
        fact
        for fact in tried
        if fact.outcome == "timed_out" and fact.lock_paths and builds(fact) and not fact.compilers
    )


def _builders(scene: Scene) -> tuple[MainThread, ...]:
    return tuple(
        thread
        for thread in scene.threads(scene.world)
        if thread.leaf == "compile" or thread.op == "extension-build"
    )


def _weigh(scene: Scene) -> Weighings:
    waiting, begun = _waiting(scene), last_line(scene, BEGUN)
    for tried in _imports_waiting(scene)[:1]:
        says = (
            f"`import {tried.module}` in a fresh process waited for the lock {tried.lock_paths[0]}"
            " of an extension build, and nothing compiled"
        )
        yield weighing(26, "probe-outcome", says, tried)
    if not waiting:
        yield from weigh_statement(scene, LEFT)
        yield from _cut_off(scene)
        if begun is not None and not last_line(scene, BUILDS, within=20):
            says = (
                "The last that it printed is the begin of an extension's load:"
                f" {short(begun[1], 100)}"
            )
            yield weighing(13, "suspects-log", says, begun[0])
        return
    path = f" {waiting[0].lock_path}" if waiting[0].lock_path else ""
    # a dump that was saved is one look, and it was taken because all stood still
    points = (
        6 if waiting[0].looks < 2 and scene.live is not None and not only_dumps(scene.live) else 13
    )
    says = f"{who(waiting[0])} waits for the lock{path} of an extension build ({waiting[0].op})"
    yield weighing(points, "suspects-stack", says, *waiting)
    running, builders = compilers(scene), _builders(scene)
    if running or builders:
        what = (
            f"compiler pid {running[0].pid} runs"
            if running
            else f"{ranks_say([builders[0].rank or 0], capital=False)} builds"
        )
        yield weighing(
            -26, "process-state-and-locks", f"The build goes on: {what}", *running, *builders
        )
    elif scene.of(ProcessState):
        says = "No compiler runs below any rank, and no rank builds: the lock is stale"
        yield weighing(13, "process-state-and-locks", says, *waiting)
    printed = [event for event in scene.of(LogEvent) if event.event == "extension-building"]
    if printed:
        says = f"The output ends at an extension: {printed[-1].line[:100]}"
        yield weighing(3, "suspects-log", says, printed[-1])


def _cut_off(scene: Scene) -> Weighings:
    """A printed stack ends where an extension is loaded: the frames of a build would be deeper."""
    if scene.live is not None and not only_dumps(scene.live):
        return
    loads = [thread for thread in scene.threads(scene.suspects) if before_a_build(thread)]
    if loads and not compilers(scene):
        says = f"{who(loads[0])} stood in the load of an extension, and no frame of a build is left"
        yield weighing(13, "suspects-stack", says, *loads)


def _path(scene: Scene) -> str:
    found = [thread.lock_path for thread in _waiting(scene) if thread.lock_path] + [
        tried.lock_paths[0] for tried in _imports_waiting(scene)
    ]
    return scene.whole_path(next(iter(found), ""))


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(thread.pid for thread in _waiting(scene))


def _summary(scene: Scene) -> str:
    told = statement(scene, LEFT) if not _waiting(scene) else None
    if told is not None:
        return f"An extension was not loaded, and a lock of its build may be why{quote_after(told)}"
    return (
        f"{subject(scene)} {verb(scene.ranks, 'waits', 'wait')} for"
        f" {_path(scene) or 'the lock of an extension build'}, and nobody builds"
    )


def _fixes(scene: Scene) -> Fixes:
    path = _path(scene) or "~/.cache/torch_extensions/*/NAME/lock"
    return (
        fix(
            "Make sure that nobody builds",
            f"ls -l {path}   (how old is it?)",
            "pgrep -a 'nvcc|ninja|cc1plus'   (on every host that shares the folder)",
        ),
        fix("Remove the stale lock: the waiting ranks go on by themselves", f"rm {path}"),
        fix(
            "Build before the launch",
            "load the extension once in one process, or install it as a wheel",
        ),
    )


CAUSE = Cause(
    id="extension-build-lock",
    title="An extension build left its lock behind",
    modes=("hang", "slow", "check", "crash"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle=(
        "ls -l the lock file, and pgrep -a 'nvcc|ninja|cc1plus' on every host that shares the"
        " folder"
    ),
    refines="file-lock-held",
    accounts_for=("rank-stuck", "import-hang", "rank0-long-task"),
)
