"""Ranks use other GPUs than they were given.

`torch.cuda.set_device` is missing or comes too late, a checkpoint is loaded without `map_location`, a tensor is made with plain `.cuda()`: everything lands on
GPU 0, or one rank has tensors on two GPUs.

It is recognised by tensors of one rank on cuda:0 and cuda:1, by a device that a checkpoint names and this rank does not see, and by several processes on GPU 0 in
nvidia-smi's table. A tensor on the CPU beside one on a GPU is a plain mistake of the code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from trainprobe.causes.cause import Cause
from trainprobe.causes.scene import Scene, user_frame, weighing
from trainprobe.causes.told import captured, failed_of_something_else, lines, told, weigh_told
from trainprobe.causes.words import fix, listed, sentence, short, subject
from trainprobe.facts import Facts, LogEvent
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# ATen's and THC's checks (torch 0.4 to 2.13), nn/parallel/distributed.py, serialization.py, accelerate.
WORDING = (
    r"found at least two devices, cuda:\d{1,3}(?: \([^)\n]{0,60}\))? and cuda:\d|must be on the current device|arguments are located on different GPUs|on the same GPU\b"
    r"|tensors are on different GPUs|device_ids and output_device arguments only work with|on a different device than the one you.re training on"
    r"|Attempting to deserialize object on CUDA device \d"
)
SHOWS = ("device-crossed", "device-of-checkpoint")


def _crowded(scene: Scene) -> tuple[str, tuple[LogEvent, ...]]:
    """The GPU on which several processes of nvidia-smi's table have memory while some of them have their own elsewhere too."""
    by_gpu: dict[str, dict[str, LogEvent]] = defaultdict(dict)
    for event in lines(scene, "gpu-process"):
        by_gpu[event.captured.get("gpu", "")][event.captured.get("pid", "")] = event
    if not by_gpu:
        return "", ()
    gpu = max(by_gpu, key=lambda one: len(by_gpu[one]))
    elsewhere = {pid for other, pids in by_gpu.items() if other != gpu for pid in pids}
    return (gpu, tuple(by_gpu[gpu].values())) if len(by_gpu[gpu]) > 1 and elsewhere & set(by_gpu[gpu]) else ("", ())


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    yield from weigh_told(scene, told(scene, WORDING, *SHOWS), sign=26)
    gpu, crowd = _crowded(scene)
    if crowd:
        yield weighing(13, "gpu", f"{len(crowd)} processes have memory on GPU {gpu}, and some of them on another too", *crowd[:4])
    unset = lines(scene, "device-unset")
    if unset and not failed_of_something_else(scene):
        yield weighing(6, "suspects-log", f"A rank has not said which GPU is its own: {short(unset[0].line)}", unset[0])


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = told(scene, WORDING, *SHOWS)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    where = f" at {frame.where}" if frame is not None else ""
    crossed = lines(scene, "device-crossed")
    pair = captured(crossed[:1], "first") + captured(crossed[:1], "second")
    if len(pair) == 2:
        return sentence(f"{subject(scene)} has tensors on {listed(pair)}{where}")
    if heard is not None:
        return sentence(f"{subject(scene)} uses another GPU than its own{where}: {short(heard.text, 140)}")
    gpu, crowd = _crowded(scene)
    return sentence(f"{len(crowd)} processes use GPU {gpu}" if crowd else f"{subject(scene)} has not said which GPU is its own")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    frame = user_frame(scene.origin.frames) if scene.origin is not None else None
    return (
        fix(
            scene,
            "Bind the rank before anything else touches CUDA",
            'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
            "init_process_group(..., device_id=torch.device('cuda', local_rank))",
        ),
        fix(
            scene,
            "Put everything on that device",
            f"open {frame.where}   ({frame.text.strip()})" if frame is not None and frame.text else "",
            "tensor.to(model_device) instead of .cuda() or 'cuda:0'",
            "torch.load(path, map_location='cpu')   or   map_location=f'cuda:{local_rank}'",
        ),
        fix(scene, "See who is where", "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv"),
    )


CAUSE = Cause(
    id="wrong-device-binding",
    title="A rank uses another GPU than its own",
    means="Ranks use other GPUs than they were given.",
    telling="Several processes on GPU 0, tensors on cuda:0 and cuda:1 in one rank, or a checkpoint's device that is not there.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    would_settle="torch.cuda.current_device() in each rank beside its LOCAL_RANK, and nvidia-smi",
    refines="user-exception",
    wording=WORDING,
)
