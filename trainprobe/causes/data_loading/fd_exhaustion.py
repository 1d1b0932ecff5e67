"""The limit of open files is reached, most often by tensors that travel from loader workers.

With torch's default sharing strategy every tensor that a worker sends takes a file descriptor in
the training process, and keeps it for as long as the tensor lives. A job that holds on to batches,
has many workers, or runs under `ulimit -n 1024` runs out: "Too many open files", "received 0 items
of ancdata", "unable to open shared memory object".

It is recognised by those words of the rank that failed first, by the number of descriptors beside
their limit, and by the host check of `ulimit -n`. Far fewer descriptors than the limit speak
against it. Descriptors that grow with the rows foretell it.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fixes, rank_or_process, short
from trainprobe.causes.predicted import (
    again_planned,
    fewer_workers,
    foreseen,
    needed,
    power_of_two,
    weigh_foreseen,
)
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import checked, statement, weigh_message
from trainprobe.facts import ProcessState
from trainprobe.signatures.messages import message

WORDING = message("fd-exhaustion")
LOW = 4096  # what a loader with many workers fills; distributions give 1024
CHECK = "lim.nofile"
NEARLY = 0.9
# Times as many at the planned size as at the smallest: they are opened for the data.
GROWN = 3.0
HIGHEST = 1 << 20  # the kernel's own fs.nr_open
FIXES = """
Raise the limit
    ulimit -n 65536{now}   (in the shell or batch script that starts the job)
    verify: ulimit -n
Let workers share tensors through files
    torch.multiprocessing.set_sharing_strategy('file_system')   (before the first DataLoader)
Do not keep what workers send
    copy what is kept: batch.clone(), or keep plain numbers instead of tensors
"""
CLOSE = """
Close what is opened for each row or batch
    with open(path) as file: ...   (in __getitem__), or one open file for each worker; batch.clone()
        for what is kept of a batch
    verify: {again}
"""
RAISE = """
Raise the limit
    ulimit -n {enough}   (now {now}; in the shell or batch script that starts the job)
    verify: ulimit -n
"""


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_foreseen(foreseen(scene.group, "fds"))
    found = yield from weigh_message(scene, WORDING)
    yield from checked(scene, CHECK, corroborates=found is not None)
    limit = scene.given("limit.nofile")
    if found is not None and limit is not None and limit.number and limit.number <= LOW:
        says = f"The limit of open files is {limit.number:.0f}"
        yield weighing(10, "environment-and-limits", says, limit)
    full = _fullest(scene)
    if full is not None and full.fds is not None and full.nofile_soft:
        share = full.fds / full.nofile_soft
        says = f"Pid {full.pid} holds {full.fds} of {full.nofile_soft} descriptors"
        if share >= NEARLY:
            yield weighing(13, "process-state-and-locks", says, full)
        elif share < 0.5 and found is None:
            yield weighing(-13, "process-state-and-locks", says, full)


def _fullest(scene: Scene) -> ProcessState | None:
    states = [fact for rank in scene.suspects for fact in scene.of(ProcessState, rank=rank)]
    measured = [fact for fact in states if fact.fds is not None and fact.nofile_soft]
    return max(measured, key=lambda fact: (fact.fds or 0) / (fact.nofile_soft or 1), default=None)


def _summary(scene: Scene) -> str:
    if (prediction := foreseen(scene.group, "fds")) is not None:
        return f"The limit of open files will be reached: {prediction.says}"
    found, full, check = statement(scene, WORDING), _fullest(scene), scene.failed_check(CHECK)
    limit, numbers = scene.limit("limit.nofile"), ""
    if full is not None:
        numbers = f" ({full.fds} of {full.nofile_soft} in use)"
    elif check is not None:
        numbers = f" ({check.says.rstrip('.')})"
    elif limit is not None:
        numbers = f" (ulimit -n is {limit:.0f})"
    if found is None:
        return f"The limit of open files is too low for this run{numbers}"
    who = rank_or_process(found.fact.rank)
    return f"{who} has no file descriptor left{numbers}: {short(found.text, 120)}"


def _fixes(scene: Scene) -> Fixes:
    """A higher limit helps where it is within reach; more rows need more descriptors only where
    something is opened for each and never closed.
    """
    prediction, limit = foreseen(scene.group, "fds"), scene.limit("limit.nofile")
    if prediction is None:
        return fixes(FIXES, now=f"   (now {limit:.0f})" if limit is not None else "")
    grown = prediction.value and prediction.value > GROWN * prediction.points[0][1]
    enough = max(65536, power_of_two(needed(prediction)))
    again = again_planned(scene, prediction)
    return (
        *(fixes(CLOSE, again=again) if grown else ()),
        *(
            fixes(RAISE, enough=enough, now=f"{prediction.limit or 0:.0f}")
            if enough <= HIGHEST
            else ()
        ),
        *fewer_workers(scene, prediction),
    )


CAUSE = Cause(
    id="fd-exhaustion",
    title="The limit of open files is reached",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="ls /proc/<PID>/fd | wc -l while it runs, beside ulimit -n",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("allows too few open files", "allow too few open files"),
        checks=("lim.nofile",),
        values=("limit.nofile",),
    ),
)
