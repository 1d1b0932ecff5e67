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
from trainprobe.causes.phrases import Fixes, fixes, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import all_of, failed_at_start
from trainprobe.causes.startup_failures import (
    captured,
    failed_of_something_else,
    lines,
    startup_failure,
)
from trainprobe.causes.statements import quote, quote_after
from trainprobe.facts import LogEvent
from trainprobe.model.ranks import and_list
from trainprobe.signatures.messages import message

WORDING = message("wrong-device-binding")
SHOWS = ("device-crossed", "device-of-checkpoint")
FIXES = """
Bind the rank before anything else touches CUDA
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_process_group(..., device_id=torch.device('cuda', local_rank))
Put everything on that device
    {look}
    tensor.to(model_device) instead of .cuda() or 'cuda:0'
    torch.load(path, map_location='cpu')   or   map_location=f'cuda:{local_rank}'
See who is where
    nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv
"""


def _crowded(scene: Scene) -> tuple[str, tuple[LogEvent, ...]]:
    """The GPU that several processes use, some of which also use their own."""
    by_gpu: dict[str, dict[str, LogEvent]] = defaultdict(dict)
    for event in lines(scene, "gpu-process"):
        by_gpu[event.captured.get("gpu", "")][event.captured.get("pid", "")] = event
    gpu = max(by_gpu, key=lambda index: len(by_gpu[index]), default="")
    crowd = by_gpu.get(gpu, {})
    elsewhere = {pid for other, pids in by_gpu.items() if other != gpu for pid in pids}
    return (gpu, tuple(crowd.values())) if len(crowd) > 1 and elsewhere & set(crowd) else ("", ())


def _shared(scene: Scene) -> Weighings:
    gpu, crowd = _crowded(scene)
    if crowd:
        says = f"{len(crowd)} processes have memory on GPU {gpu}, and some of them on another too"
        yield weighing(13, "gpu", says, *crowd[:4])


def _unset(scene: Scene) -> Weighings:
    events = lines(scene, "device-unset")
    if events and not failed_of_something_else(scene):
        yield quote(6, "A rank has not said which GPU is its own", events[0])


def _summary(scene: Scene) -> str:
    found, crossed = startup_failure(scene, WORDING, *SHOWS), lines(scene, "device-crossed")[:1]
    pair, at = captured(crossed, "first") + captured(crossed, "second"), scene.at_own_line
    if len(pair) == 2:
        return f"{subject(scene)} has tensors on {and_list(pair)}{at}"
    if found is not None:
        return f"{subject(scene)} uses another GPU than its own{at}{quote_after(found)}"
    gpu, crowd = _crowded(scene)
    if crowd:
        return f"{len(crowd)} processes use GPU {gpu}"
    return f"{subject(scene)} has not said which GPU is its own"


def _fixes(scene: Scene) -> Fixes:
    frame = scene.own_frame
    look = f"open {frame.where}   ({frame.text.strip()})" if frame and frame.text else ""
    return fixes(FIXES, look=look)


CAUSE = Cause(
    id="wrong-device-binding",
    title="A rank uses another GPU than its own",
    weigh=all_of(failed_at_start(WORDING, *SHOWS, sign=26), _shared, _unset),
    summary=_summary,
    fixes=_fixes,
    would_settle="torch.cuda.current_device() in each rank beside its LOCAL_RANK, and nvidia-smi",
    refines="user-exception",
    wording=WORDING,
)
