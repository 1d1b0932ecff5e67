"""torch is the CPU build, and the job wants a GPU.

A plain `pip install torch` on some platforms, a lock file made on a laptop, or a conda solver that
preferred the CPU variant: every GPU call fails with "Torch not compiled with CUDA enabled".

It is recognised by those words, and by the environment check, which finds GPUs beside a CPU build.
A checkpoint that cannot be read because CUDA is not available hints at it, and may as well mean a
driver or a GPU that is not there.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import (
    all_of,
    check_or,
    confirmed,
    failed_check,
    first_of,
    quoted,
    stated,
)
from trainprobe.causes.statements import advice
from trainprobe.signatures.messages import message

WORDING = message("cpu-only-torch")
HINT = message("cpu-only-torch.hint")
CHECK = "py.torch.cuda"


def _cpu_build(scene: Scene) -> Weighings:
    version = scene.given("version.torch")
    if version is not None and "+cpu" in version.value:
        says = f"torch is {version.value}, a CPU build"
        yield weighing(13, "environment-and-limits", says, version)


def _summary(scene: Scene) -> str:
    given = scene.given("version.torch")
    version = scene.plan.torch_version or (given.value if given is not None else "")
    return f"torch {version}".rstrip() + " is a CPU build, and the job asks for a GPU"


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    install = (
        f"{python} -m pip install --force-reinstall torch   (from the index that pytorch.org names"
        " for your CUDA)"
    )
    verify = f"{python} -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'"
    return (fix("Install the CUDA build", *(advice(scene, CHECK) or (install,)), verify=verify),)


CAUSE = Cause(
    id="cpu-only-torch",
    title="torch is a CPU build",
    weigh=all_of(
        confirmed(first_of(stated(WORDING), quoted(6, "CUDA was not available", HINT)), _cpu_build),
        failed_check(CHECK, beside=WORDING),
    ),
    summary=check_or(CHECK, otherwise=_summary),
    fixes=_fixes,
    ranks=nobody,
    would_settle="python -c 'import torch; print(torch.version.cuda)'",
    refines="user-exception",
    wording=WORDING,
    ready=ReadySigns(
        says=("has a torch without GPUs", "have a torch without GPUs"),
        checks=("py.torch.cuda", "py.torch"),
    ),
)
