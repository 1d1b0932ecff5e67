"""The limit of processes or threads is reached.

Every rank starts threads (OpenMP, BLAS, pin memory, heartbeat) and loader workers. A low `ulimit
-u`, or the pids limit of a container, makes the next start fail: "can't start new thread",
"pthread_create failed: Resource temporarily unavailable".

It is recognised by those words, and by the host check of the limit; processes that grow with ranks
and workers foretell it. A limit of address space gives the same words (`address-space-limit`).
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, admin_fix, fix
from trainprobe.causes.predicted import (
    fewer_workers,
    foreseen,
    needed,
    power_of_two,
    weigh_foreseen,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import checked, quote_after, statement, weigh_message
from trainprobe.facts import LogEvent
from trainprobe.signatures.messages import message

WORDING = message("process-limit")
FORKS = message("process-limit.forks")
CHECK = "lim.nproc"
NPROC = re.compile(r"RLIMIT_NPROC (-?\d+) current")
HUGE = 100_000  # nobody reaches that many threads; something else refuses them


def reported_limit(scene: Scene) -> tuple[LogEvent, int] | None:
    """The limit of processes that OpenBLAS printed beside its failure."""
    for event in scene.events("nproc-limit", "process-limit"):
        match = NPROC.search(event.line)
        if match is not None:
            return event, int(match.group(1))
    return None


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_foreseen(foreseen(scene.group, "pids"))
    found = yield from weigh_message(scene, WORDING)
    yield from checked(scene, CHECK, corroborates=found is not None)
    reported, given = reported_limit(scene), scene.given("limit.nproc")
    if reported is not None and found is not None:
        # the container's or the unit's limit, where it is not the user's
        forks = statement(scene, FORKS)
        event, limit = reported
        says = f"The limit of processes is {limit if limit >= 0 else 'unlimited'}"
        if forks is not None:
            says += ", yet a fork is refused"
        low = 0 <= limit < HUGE or forks is not None
        if not low:
            says += ", so something else refuses threads"
        yield weighing(10 if low else -13, "environment-and-limits", says, event)
    elif given is not None and given.number is not None and found is not None:
        low = 0 <= given.number < HUGE
        says = f"The limit of processes is {given.value}"
        yield weighing(10 if low else -10, "environment-and-limits", says, given)
    space = [check for check in scene.checks("lim.as", "lim.stack") if check.status == "fail"]
    if found is not None and space and not scene.checks(CHECK):
        says = f"Another limit explains it: {space[0].says.rstrip('.')}"
        yield weighing(-13, "environment-and-limits", says, *space)


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, "pids")) is not None:
        return f"No more processes or threads will be had: {prediction.says}"
    found, check = statement(scene, WORDING), scene.failed_check(CHECK)
    detail = quote_after(found, 120)
    return (
        "No more processes or threads may be"
        f" started{f' ({check.says.rstrip(chr(46))})' if check else ''}{detail}"
    )


def _fixes(scene: Scene) -> Fixes:
    prediction = foreseen(scene.group, "pids")
    enough = max(65536, power_of_two(needed(prediction))) if prediction is not None else 65536
    return (
        *(fewer_workers(scene, prediction) if prediction is not None else ()),
        fix(
            "Need fewer threads",
            "export OMP_NUM_THREADS=1",
            "DataLoader(num_workers=…) with fewer workers",
        ),
        admin_fix(
            "Raise the limit",
            f"ulimit -u {enough}",
            f"docker run --pids-limit={enough if prediction is not None else -1} …   (in a"
            " container)",
            verify="ulimit -u; cat /sys/fs/cgroup/pids.max",
        ),
    )


CAUSE = Cause(
    id="process-limit",
    title="The limit of processes or threads is reached",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ulimit -u and pids.max beside the number of threads: ps -eLf | wc -l",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("allows too few processes and threads", "allow too few processes and threads"),
        checks=("lim.nproc",),
        values=("limit.nproc", "pids.max"),
    ),
)
