"""Some ranks compile kernels while the others wait for them.

torch.compile, Triton and extensions that are built when first used compile for minutes. A rank
whose shapes differ, whose cache is cold or that runs another branch compiles alone, and the others
wait in their next collective until it is done, or until their timeout.

It is recognised by frames of dynamo, inductor, Triton or an extension build on the suspect, and by
compiler processes below it that use CPU. Where ranks compile for most of the time, dynamo's own
count of how often it has compiled that function before, and its reason, tell a model that is
compiled anew for each shape from one that is compiled once. A compiler that nobody gives CPU to, or
a build that only waits for a lock, speaks against it.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause
from trainprobe.causes.child_processes import goes_on, others_wait, states
from trainprobe.causes.commands import live_pid
from trainprobe.causes.phrases import Fixes, fixes, ranks_say, short, subject, verb
from trainprobe.causes.scene import Scene, Weighings, first_found, weighing
from trainprobe.causes.statements import last_line
from trainprobe.facts import AwaitedValue, MainThread, ProcessState, Samples
from trainprobe.facts.samples import spells_of
from trainprobe.signatures.messages import message
from trainprobe.stacks import compiling
from trainprobe.stacks.spells import share

TOLD = message("rank-compiling.told")
COMPILER = re.compile(
    r"(?:^|[/"
    r" ])(?:nvcc|cicc|ptxas|cc1plus|cc1|g\+\+|gcc|c\+\+|clang(?:\+\+)?|ninja|ld|cudafe\+\+|hipcc"
    r"|as)(?:["
    r" -]|$)|compile_worker|inductor"
)


BUILDER = "torch/utils/cpp_extension.py"
LOADS = frozenset({"load", "load_inline", "_jit_compile"})


def _compiling(scene: Scene) -> tuple[MainThread, ...]:
    return tuple(thread for thread in scene.threads(scene.suspects) if thread.leaf == "compile")


def before_a_build(thread: MainThread) -> bool:
    """Does its stack end in the function that loads an extension, which builds it or waits until
    somebody else has?
    """
    last = thread.frames[-1] if thread.frames else None
    return last is not None and last.file.endswith(BUILDER) and last.name in LOADS


def compilers(scene: Scene) -> tuple[ProcessState, ...]:
    """Compiler processes below any rank of the job that still live."""
    found = [
        state
        for state in states(scene, scene.world)
        if state.role != "rank" and state.state not in ("Z", "X")
    ]
    return tuple(
        state
        for state in found
        if COMPILER.search(" ".join(state.cmdline.split()[:3])) and "loader" not in state.role
    )


def _recompiles(scene: Scene) -> AwaitedValue | None:
    """Why dynamo compiles a function anew, with how often it had done so before."""
    known = [fact for fact in scene.of(AwaitedValue) if fact.name == compiling.REASON]
    return first_found(fact for fact in known if compiling.done_before(_text(fact)) is not None)


def _again_and_again(scene: Scene) -> bool:
    """Do all ranks of a job that makes steps compile for most of the sampled time?"""
    spells = spells_of(scene.of(Samples), compiling.compiles)
    most = bool(spells) and all(share(rows) >= compiling.MOST for rows in spells.values())
    return scene.group.mode == "slow" and not scene.ranks and most


def _text(fact: AwaitedValue) -> str:
    return fact.value.strip("'\"").replace('\\"', '"')


def _weigh(scene: Scene) -> Weighings:
    again = _recompiles(scene) if scene.group.mode == "slow" else None
    if again is not None:
        says = (
            f"Dynamo compiles a function that it has compiled"
            f" {compiling.done_before(_text(again))} times before: {short(_text(again), 120)}"
        )
        yield weighing(26, "suspects-stack", says, again)
        return
    if _again_and_again(scene):
        says = "Samples show all ranks inside one compilation after the other"
        yield weighing(26, "suspects-stack", says, *scene.of(Samples))
        return
    yield from _weigh_stacks(scene)


def _weigh_stacks(scene: Scene) -> Weighings:
    compilers_at = _compiling(scene)
    if not compilers_at:
        reported = last_line(scene, TOLD, within=3) if scene.group.mode == "hang" else None
        if reported is not None:
            says = (
                f"The last that it printed is of a build or of compiling: {short(reported[1], 100)}"
            )
            yield weighing(13, "suspects-log", says, reported[0])
        return
    first = compilers_at[0]
    says = (
        f"{ranks_say(who := [t.rank or 0 for t in compilers_at])} {verb(who, 'stands', 'stand')} in"
        f" {first.op or 'a compiler'} below {first.where}"
    )
    # before its build an extension may wait for the lock of another one
    points = 3 if all(before_a_build(thread) for thread in compilers_at) else 13
    yield weighing(points, "suspects-stack", says, *compilers_at)
    mine = [state for state in compilers(scene) if state.rank in scene.suspects]
    busy = [
        state
        for state in (*mine, *states(scene, scene.suspects))
        if goes_on(state).startswith("used") or state.state == "R"
    ]
    if busy:
        what = goes_on(busy[0]) or "is running"
        says = f"Pid {busy[0].pid} ({busy[0].cmdline[:40] or 'the rank'}) {what}"
        yield weighing(10, "process-state-and-locks", says, *busy)
    elif mine:
        says = f"Compiler pid {mine[0].pid} ({mine[0].cmdline[:40]}) lives, and uses little CPU"
        yield weighing(3, "process-state-and-locks", says, *mine)
    elif (
        any(
            state.all_cpu_s is not None and not goes_on(state)
            for state in states(scene, scene.suspects)
        )
        and first.moved is False
    ):
        says = "Neither the rank nor a compiler below it uses CPU"
        yield weighing(-6, "process-state-and-locks", says, *states(scene, scene.suspects))
    yield from others_wait(scene)


def _pids(scene: Scene) -> tuple[int, ...]:
    return tuple(
        dict.fromkeys(
            [
                *(thread.pid for thread in _compiling(scene)),
                *(state.pid for state in compilers(scene) if state.rank in scene.suspects),
            ]
        )
    )


def _summary(scene: Scene) -> str:
    reported = last_line(scene, TOLD, within=3)
    if scene.group.mode == "slow" and (again := _recompiles(scene)) is not None:
        return (
            f"{scene.group.says[0].upper()}{scene.group.says[1:]}; now because"
            f" {short(_text(again).partition(': ')[2], 120)}"
        )
    if _again_and_again(scene):
        return f"{scene.group.says[0].upper()}{scene.group.says[1:]}"
    if not _compiling(scene):
        when = "the others gave up" if scene.first_failure is not None else "the log stops"
        return (
            f"{subject(scene)} {verb(scene.ranks, 'was', 'were')} compiling when {when}:"
            f" {short(reported[1], 100) if reported else 'it said so'}"
        )
    first = _compiling(scene)[0]
    below = (
        f" with {len([state for state in compilers(scene) if state.rank in scene.suspects])}"
        " compiler processes"
        if compilers(scene)
        else ""
    )
    rest = (
        f", and {ranks_say(scene.others, capital=False)} {verb(scene.others, 'waits', 'wait')}"
        " for it"
        if scene.others
        else ""
    )
    return (
        f"{subject(scene)} {verb(scene.ranks, 'compiles', 'compile')} ({first.op or 'kernels'}) at"
        f" {first.where}{below}{rest}"
    )


ANEW = """
Compile once for all steps
    a number of the model that changes in each step: keep it in a tensor, or out of forward
    shapes that differ: torch.compile(model, dynamic=True), or torch._dynamo.mark_dynamic(x, 1)
        before the first step
    pad to a few fixed shapes
Name every reason
    TORCH_LOGS=recompiles python ...
"""
FIXES = """
Wait for it: compiling ends
    trainprobe attach {live_pid}   (again in a minute: does it still compile?)
Share what was compiled
    export TORCHINDUCTOR_CACHE_DIR=/shared/inductor TRITON_CACHE_DIR=/shared/triton
        TORCH_EXTENSIONS_DIR=/shared/ext
Let all ranks compile the same at the same time
    pad to fixed shapes; run one warm-up step on every rank before the first collective
Or wait longer
    init_process_group(..., timeout=timedelta(hours=1))
"""


def _fixes(scene: Scene) -> Fixes:
    if scene.group.mode == "slow" and (_recompiles(scene) or _again_and_again(scene)):
        return fixes(ANEW)
    return fixes(FIXES, live_pid=live_pid(scene))


CAUSE = Cause(
    id="rank-compiling",
    title="A rank compiles while the others wait",
    modes=("hang", "slow"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    pids=_pids,
    would_settle="ps --ppid PID -o pid,pcpu,cmd: does a compiler below it use CPU?",
    refines="rank-stuck",
    accounts_for=("rank0-long-task", "straggler-rank", "file-lock-held"),
)
