"""The limit of processes or threads is reached.

Every rank starts threads (OpenMP, BLAS, pin memory, heartbeat) and loader workers. A low `ulimit -u`, or the pids limit of a container,
makes the next start fail: "can't start new thread", "pthread_create failed: Resource temporarily unavailable".

It is recognised by those words, and by the host check of the limit; processes that grow with ranks and workers foretell it. A limit of address space gives the same words
(`address-space-limit`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.predicted import fewer_workers, foreseen, needed, power_of_two, weigh_foreseen
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, LogEvent
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# CPython's thread start, OpenBLAS, libgomp, libuv/tokio, and fork(2) with EAGAIN.
WORDING = (
    r"can't start new thread|pthread_create (?:has )?failed|pthread_create\(\).{0,60}failed|Thread creation failed|blas_thread_init: pthread"
    r"|fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\](?! Unable| Unable to| Can't)|unable to allocate necessary resources for OMP thread"
    r"|ThreadPoolBuildError|failed to spawn thread|fork rejected by pids controller|std::system_error.{0,80}\n?.{0,40}Resource temporarily unavailable"
)
FORKS = r"fork: (?:retry: )?Resource temporarily unavailable|pids controller"
CHECK = "lim.nproc"
NPROC = re.compile(r"RLIMIT_NPROC (-?\d+) current")
HUGE = 100_000  # nobody reaches that many threads; something else refuses them


def limit_told(scene: Scene) -> tuple[LogEvent, int] | None:
    """The limit of processes that OpenBLAS printed beside its failure."""
    for event in scene.events("nproc-limit", "process-limit"):
        match = NPROC.search(event.line)
        if match is not None:
            return event, int(match.group(1))
    return None


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_foreseen(foreseen(group, "pids"))
    heard = said(scene, WORDING)
    yield from spoken(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
    yield from checked(scene, CHECK, corroborates=heard is not None)
    told, given = limit_told(scene), scene.given("limit.nproc")
    if told is not None and heard is not None:
        forks = said(scene, FORKS)  # the container's or the unit's limit, where it is not the user's
        low = 0 <= told[1] < HUGE or forks is not None
        says = f"The limit of processes is {told[1] if told[1] >= 0 else 'unlimited'}{', yet a fork is refused' if forks is not None else ''}"
        yield weighing(10 if low else -13, "environment-and-limits", says if low else f"{says}, so something else refuses threads", told[0])
    elif given is not None and given.number is not None and heard is not None:
        low = 0 <= given.number < HUGE
        yield weighing(10 if low else -10, "environment-and-limits", f"The limit of processes is {given.value}", given)
    space = [check for check in scene.checks("lim.as", "lim.stack") if check.status == "fail"]
    if heard is not None and space and not scene.checks(CHECK):
        yield weighing(-13, "environment-and-limits", f"Another limit explains it: {space[0].says.rstrip('.')}", *space)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    if (one := foreseen(group, "pids")) is not None:
        return sentence(f"No more processes or threads will be had: {one.says}")
    heard, check = said(scene, WORDING), next(iter(scene.checks(CHECK)), None)
    detail = f": {short(heard.text, 120)}" if heard else ""
    return sentence(f"No more processes or threads may be started{f' ({check.says.rstrip(chr(46))})' if check else ''}{detail}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    one = foreseen(group, "pids")
    enough = max(65536, power_of_two(needed(one))) if one is not None else 65536
    return (
        *(fewer_workers(scene, one) if one is not None else ()),
        fix(scene, "Need fewer threads", "export OMP_NUM_THREADS=1", "DataLoader(num_workers=…) with fewer workers"),
        fix(
            scene,
            "Raise the limit",
            f"ulimit -u {enough}",
            f"docker run --pids-limit={enough if one is not None else -1} …   (in a container)",
            who="admin",
            risk="needs-admin",
            verify="ulimit -u; cat /sys/fs/cgroup/pids.max",
        ),
    )


CAUSE = readied(
    Cause(
        id="process-limit",
        title="The limit of processes or threads is reached",
        means="The user or the container may start no more processes or threads.",
        telling="pthread_create failed, can't start new thread, fork: Resource temporarily unavailable; a low ulimit -u or pids limit.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="ulimit -u and pids.max beside the number of threads: ps -eLf | wc -l",
        refines="user-exception",
        wording=WORDING,
    ),
    Signs(says=("allows too few processes and threads", "allow too few processes and threads"), checks=("lim.nproc",), values=("limit.nproc", "pids.max")),
)
