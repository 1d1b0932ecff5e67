"""Two ranks use the same GPU.

Ranks that do not bind themselves to a GPU all land on the first one. NCCL refuses it ("Duplicate
GPU detected"), and older versions hang.

It is recognised by NCCL's words, and by a GPU that holds processes of two ranks of the job beside a
GPU that holds none. As many GPUs as ranks, each with one rank of its own, rule it out.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns
from trainprobe.causes.child_processes import rank_pids
from trainprobe.causes.phrases import fixes, ranks_say
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    StartupFailure,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.facts import Gpu, JobRank
from trainprobe.signatures.messages import message

WORDING = message("duplicate-gpu")
USAGE = message("duplicate-gpu.usage")


def _shared(scene: Scene) -> tuple[Gpu, tuple[int, ...]] | None:
    """The first GPU that two ranks have memory on, with their pids."""
    pids = rank_pids(scene)
    for gpu in scene.of(Gpu):
        mine = tuple(sorted(gpu.pids & pids))
        if len(mine) > 1:
            return gpu, mine
    return None


def _heard(scene: Scene) -> StartupFailure | None:
    return startup_failure(scene, WORDING, "duplicate-gpu")


def _pair(found: StartupFailure | None) -> tuple[int, ...]:
    if found is None or not {"rank", "other"} <= set(found.captured):
        return ()
    return tuple(sorted((int(found.captured["rank"]), int(found.captured["other"]))))


def _weigh(scene: Scene) -> Weighings:
    found = _heard(scene)
    if found is not None:
        yield from weigh_startup_failure(scene, found, sign=26)
    elif not lines(scene, "interface-missing", "world-mismatch", "nccl-setting-faulty"):
        usage = startup_failure(scene, USAGE, "nccl-usage")
        if usage is not None:  # NCCL says so of a few mistakes, and this is the usual one
            yield from weigh_startup_failure(scene, usage, sure=13, sign=10)
    shared, gpus = _shared(scene), scene.of(Gpu)
    if shared is not None:
        free = [gpu for gpu in gpus if not gpu.processes]
        says = (
            f"GPU {shared[0].index} holds memory of {len(shared[1])}"
            f" ranks{f', and GPU {free[0].index} of nobody' if free else ''}"
        )
        # each rank may have a small context on GPU 0 by mistake
        yield weighing(10 if free else 3, "gpu", says, shared[0], *free[:1])
    elif found is None and gpus and any(gpu.processes for gpu in gpus):
        yield weighing(-26, "gpu", "No GPU holds memory of two ranks", *gpus)


def _ranks(scene: Scene) -> tuple[int, ...]:
    pair, shared = _pair(_heard(scene)), _shared(scene)
    if pair:
        return pair
    of_pid = {fact.pid: fact.rank for fact in scene.of(JobRank) if fact.rank is not None}
    if shared is not None:
        return tuple(sorted(of_pid[pid] for pid in shared[1] if pid in of_pid))
    return scene.ranks


def _summary(scene: Scene) -> str:
    found, shared = _heard(scene), _shared(scene)
    device = "one"
    if found is not None:
        device = found.captured.get("device", "one")
    elif shared is not None:
        device = str(shared[0].index)
    return f"{ranks_say(_ranks(scene))} use the same GPU ({device})"


CAUSE = Cause(
    id="duplicate-gpu",
    title="Two ranks use the same GPU",
    modes=("crash", "hang"),
    weigh=_weigh,
    summary=_summary,
    fixes=fixes("""
        Bind each rank to a GPU before anything else
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            init_process_group(..., device_id=...)
        See who is where
            nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv
            echo $CUDA_VISIBLE_DEVICES
    """),
    would_settle="nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv",
    ranks=_ranks,
    accounts_for=("user-exception",),
    wording=f"{WORDING}|{USAGE}",
    ready=ReadySigns(
        says=("gives several ranks one GPU", "give several ranks one GPU"), checks=("plan.gpus",)
    ),
)
