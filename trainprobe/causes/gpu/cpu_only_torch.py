"""torch is the CPU build, and the job wants a GPU.

A plain `pip install torch` on some platforms, a lock file made on a laptop, or a conda solver that preferred the CPU variant: every GPU
call fails with "Torch not compiled with CUDA enabled".

It is recognised by those words, and by the environment check, which finds GPUs beside a CPU build. A checkpoint that cannot be read because CUDA is
not available hints at it, and may as well mean a driver or a GPU that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.unready import Signs, readied
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# torch/cuda/__init__.py, _lazy_init(); c10's device guards and, from 2.11 on, at::accelerator; "no NCCL built in" says the same of a CPU build; bitsandbytes.
WORDING = (
    r"not compiled with (?:CUDA|XPU) enabled|Distributed package doesn't have NCCL built in|not linked with support for cuda|compiled without GPU support"
    r"|PyTorch (?:is|was) not built with CUDA|Cannot access accelerator device when none is available"
)
HINT = r"Attempting to deserialize object on a (?:CUDA )?device but torch\.cuda\.is_available\(\) is False"
CHECK = "py.torch.cuda"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, hint = said(scene, WORDING), said(scene, HINT)
    yield from spoken(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
    elif hint is not None:
        yield weighing(6, "suspects-log", f"CUDA was not available: {short(hint.text, 120)}", hint.fact)
    version = scene.given("version.torch")
    if version is not None and "+cpu" in version.value and (heard is not None or hint is not None):
        yield weighing(13, "environment-and-limits", f"torch is {version.value}, a CPU build", version)
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    plan, check, given = scene.plan, next(iter(scene.checks(CHECK)), None), scene.given("version.torch")
    version = plan.torch_version or (given.value if given is not None else "")
    said_version = f" {version}" if version else ""
    return sentence(check.says if check is not None else f"torch{said_version} is a CPU build, and the job asks for a GPU")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    more = advice(scene, CHECK)
    return (
        fix(
            scene,
            "Install the CUDA build",
            *(more or (f"{python} -m pip install --force-reinstall torch   (from the index that pytorch.org names for your CUDA)",)),
            verify=f"{python} -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'",
        ),
    )


CAUSE = readied(
    Cause(
        id="cpu-only-torch",
        title="torch is a CPU build",
        means="The installed torch was built without CUDA, and the job or the host has GPUs.",
        telling="Torch not compiled with CUDA enabled; GPUs beside a CPU build.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="python -c 'import torch; print(torch.version.cuda)'",
        refines="user-exception",
        wording=WORDING,
    ),
    Signs(says=("has a torch without GPUs", "have a torch without GPUs"), checks=("py.torch.cuda", "py.torch")),
)
