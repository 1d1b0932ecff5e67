"""Two ranks use the same GPU.

Ranks that do not bind themselves to a GPU all land on the first one. NCCL refuses it ("Duplicate GPU detected"), and older versions hang.

It is recognised by NCCL's words, and by a GPU that holds processes of two ranks of the job beside a GPU that holds none. As many GPUs as ranks, each with one rank
of its own, rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.ends import rank_pids
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.told import Told, lines, told, weigh_told
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, ranks_say, sentence
from trainprobe.facts import Facts, Gpu, JobRank
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

WORDING = r"Duplicate GPU detected ?: rank (?P<rank>\d{1,7}) and rank (?P<other>\d{1,7}) both on CUDA device (?P<device>\w{1,12})"
USAGE = r"ncclInvalidUsage|invalid usage \(run with NCCL_DEBUG|NCCL error in: [^\n]{0,400}, invalid usage"


def _shared(scene: Scene) -> tuple[Gpu, tuple[int, ...]] | None:
    """The first GPU that two ranks have memory on, with their pids."""
    pids = rank_pids(scene)
    for gpu in scene.facts.of(Gpu, cell=scene.cell):
        mine = tuple(sorted({process.pid for process in gpu.processes} & pids))
        if len(mine) > 1:
            return gpu, mine
    return None


def _heard(scene: Scene) -> Told | None:
    return told(scene, WORDING, "duplicate-gpu")


def _pair(heard: Told | None) -> tuple[int, ...]:
    if heard is None or not {"rank", "other"} <= set(heard.captured):
        return ()
    return tuple(sorted((int(heard.captured["rank"]), int(heard.captured["other"]))))


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = _heard(scene)
    if heard is not None:
        yield from weigh_told(scene, heard, sign=26)
    elif not lines(scene, "interface-missing", "world-mismatch", "nccl-setting-faulty"):
        usage = told(scene, USAGE, "nccl-usage")
        if usage is not None:  # NCCL says so of a few mistakes, and this is the usual one
            yield from weigh_told(scene, usage, sure=13, sign=10)
    shared, gpus = _shared(scene), facts.of(Gpu, cell=group.cell)
    if shared is not None:
        free = [gpu for gpu in gpus if not gpu.processes]
        says = f"GPU {shared[0].index} holds memory of {len(shared[1])} ranks{f', and GPU {free[0].index} of nobody' if free else ''}"
        yield weighing(10 if free else 3, "gpu", says, shared[0], *free[:1])  # each rank may have a small context on GPU 0 by mistake
    elif heard is None and gpus and any(gpu.processes for gpu in gpus):
        yield weighing(-26, "gpu", "No GPU holds memory of two ranks", *gpus)


def _ranks(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    scene = Scene(facts, group)
    pair, shared = _pair(_heard(scene)), _shared(scene)
    if pair:
        return pair
    of_pid = {fact.pid: fact.rank for fact in facts.of(JobRank, cell=group.cell) if fact.rank is not None}
    return tuple(sorted(of_pid[pid] for pid in shared[1] if pid in of_pid)) if shared is not None else group.ranks


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard, shared = _heard(scene), _shared(scene)
    device = heard.captured.get("device", "one") if heard is not None else str(shared[0].index) if shared is not None else "one"
    return sentence(f"{ranks_say(_ranks(facts, group))} use the same GPU ({device})")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(
            scene,
            "Bind each rank to a GPU before anything else",
            'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
            "init_process_group(..., device_id=...)",
        ),
        fix(scene, "See who is where", "nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv", "echo $CUDA_VISIBLE_DEVICES"),
    )


CAUSE = readied(
    Cause(
        id="duplicate-gpu",
        title="Two ranks use the same GPU",
        means="Two ranks use the same GPU for one communicator.",
        telling="NCCL reports a duplicate GPU.",
        modes=("crash", "hang"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        would_settle="nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv",
        ranks=_ranks,
        accounts_for=("user-exception",),
        wording=f"{WORDING}|{USAGE}",
    ),
    Signs(says=("gives several ranks one GPU", "give several ranks one GPU"), checks=("plan.gpus",)),
)
