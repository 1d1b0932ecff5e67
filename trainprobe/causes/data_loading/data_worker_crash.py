"""A loader worker dies of a native crash or is killed.

The worker is a process of its own. When it dies, the training process only learns that "DataLoader worker (pid N) is killed by
signal", and raises. The fault is in what the worker runs: a decoder, an image library, a C extension.

It is recognised by those words and by the end of the worker itself. Bus errors belong to `shm-exhausted`, and a kill for lack of
memory to `host-oom-killed`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short, subject
from trainprobe.facts import Facts, RankEnding
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/utils/data/_utils/signal_handling.py and dataloader.py, _try_get_data(). Bus error means shared memory, so it is left out.
WORDING = (
    r"DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:is killed by signal: (?!Bus error)|exited unexpectedly)|Pin memory thread exited unexpectedly"
    r"|Unexpected (?:segmentation fault|floating-point exception) encountered in worker"
)
KILLED = r"is killed by signal: Killed"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    yield from spoken(scene, WORDING)
    dead = _dead_workers(scene)
    if dead:
        how = dead[0].signal_name or f"exit code {dead[0].code}"
        yield weighing(10, "exit-status", f"Loader worker {dead[0].pid} of rank {dead[0].rank} ended with {how}", *dead)
    elif heard is not None:
        yield from first_to_fail(scene)
    memory = scene.memory
    if said(scene, KILLED) is not None and memory is not None and (memory.oom_kill_rise or 0) > 0:
        yield weighing(-26, "host-pressure", f"The cgroup counted {memory.oom_kill_rise} out-of-memory kills", memory)


def _dead_workers(scene: Scene) -> tuple[RankEnding, ...]:
    found = [fact for rank in scene.suspects for fact in scene.facts.of(RankEnding, cell=scene.cell, rank=rank)]
    # A worker that its parent ends with SIGTERM while leaving did not crash.
    return tuple(fact for fact in found if fact.role == "loader-worker" and fact.abnormal and fact.signal_name != "SIGTERM")


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, dead = said(scene, WORDING), _dead_workers(scene)
    what = short(heard.text, 140) if heard is not None else f"worker {dead[0].pid} died of {dead[0].signal_name}" if dead else "a worker died"
    return sentence(f"{subject(scene)} lost a loader worker: {what}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Let the crash happen in the training process", "DataLoader(..., num_workers=0) with PYTHONFAULTHANDLER=1: the stack then names the line"),
        fix(
            scene,
            "Find the library",
            "dmesg | grep -i segfault | tail -3   (names the library, where it may be read)",
            "upgrade the decoder that the line calls",
        ),
    )


CAUSE = Cause(
    id="data-worker-crash",
    title="A loader worker crashed",
    means="A loader worker dies of a native crash, and its training process raises because of it.",
    telling="DataLoader worker is killed by signal Segmentation fault, or exited unexpectedly.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="the same command with num_workers=0 and PYTHONFAULTHANDLER=1",
    refines="user-exception",
    wording=WORDING,
)
