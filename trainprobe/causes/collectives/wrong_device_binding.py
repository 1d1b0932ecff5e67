"""Ranks use other GPUs than they were given.

`torch.cuda.set_device` is missing or comes too late, a checkpoint is loaded without `map_location`,
a tensor is made with plain `.cuda()`: everything lands on GPU 0, or one rank has tensors on two
GPUs.

It is recognised by tensors of one rank on cuda:0 and cuda:1, by a device that a checkpoint names
and this rank does not see, and by several processes on GPU 0 in nvidia-smi's table. A tensor on the
CPU beside one on a GPU is a plain mistake of the code.
"""

from __future__ import annotations

from collections import defaultdict

from trainprobe.causes.cause import Cause
from trainprobe.causes.phrases import Fixes, fix, short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    captured,
    failed_of_something_else,
    lines,
    startup_failure,
    weigh_startup_failure,
)
from trainprobe.causes.statements import quote
from trainprobe.facts import LogEvent
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("wrong-device-binding")
SHOWS = ("device-crossed", "device-of-checkpoint")


def _crowded(scene: Scene) -> tuple[str, tuple[LogEvent, ...]]:
    """The GPU that several processes use, some of which also use their own."""
    by_gpu: dict[str, dict[str, LogEvent]] = defaultdict(dict)
    for event in lines(scene, "gpu-process"):
        by_gpu[event.captured.get("gpu", "")][event.captured.get("pid", "")] = event
    if not by_gpu:
        return "", ()
    gpu = max(by_gpu, key=lambda one: len(by_gpu[one]))
    elsewhere = {pid for other, pids in by_gpu.items() if other != gpu for pid in pids}
    if len(by_gpu[gpu]) > 1 and elsewhere & set(by_gpu[gpu]):
        return (gpu, tuple(by_gpu[gpu].values()))
    return ("", ())


def _weigh(scene: Scene) -> Weighings:
    yield from weigh_startup_failure(scene, startup_failure(scene, WORDING, *SHOWS), sign=26)
    gpu, crowd = _crowded(scene)
    if crowd:
        says = f"{len(crowd)} processes have memory on GPU {gpu}, and some of them on another too"
        yield weighing(13, "gpu", says, *crowd[:4])
    unset = lines(scene, "device-unset")
    if unset and not failed_of_something_else(scene):
        yield quote(6, "A rank has not said which GPU is its own", unset[0])


def _summary(scene: Scene) -> str:
    heard = startup_failure(scene, WORDING, *SHOWS)
    where = scene.at_own_line
    crossed = lines(scene, "device-crossed")
    pair = captured(crossed[:1], "first") + captured(crossed[:1], "second")
    if len(pair) == 2:
        return f"{subject(scene)} has tensors on {and_list(pair)}{where}"
    if heard is not None:
        return f"{subject(scene)} uses another GPU than its own{where}: {short(heard.text, 140)}"
    gpu, crowd = _crowded(scene)
    if crowd:
        return f"{len(crowd)} processes use GPU {gpu}"
    return f"{subject(scene)} has not said which GPU is its own"


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    return (
        fix(
            "Bind the rank before anything else touches CUDA",
            'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
            "init_process_group(..., device_id=torch.device('cuda', local_rank))",
        ),
        fix(
            "Put everything on that device",
            (
                f"open {frame.where}   ({frame.text.strip()})"
                if frame is not None and frame.text
                else ""
            ),
            "tensor.to(model_device) instead of .cuda() or 'cuda:0'",
            "torch.load(path, map_location='cpu')   or   map_location=f'cuda:{local_rank}'",
        ),
        fix(
            "See who is where",
            "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv",
        ),
    )


CAUSE = Cause(
    id="wrong-device-binding",
    title="A rank uses another GPU than its own",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="torch.cuda.current_device() in each rank beside its LOCAL_RANK, and nvidia-smi",
    refines="user-exception",
    wording=WORDING,
)
