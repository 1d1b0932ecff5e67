"""torch is the CPU build, and the job wants a GPU.

A plain `pip install torch` on some platforms, a lock file made on a laptop, or a conda solver that
preferred the CPU variant: every GPU call fails with "Torch not compiled with CUDA enabled".

It is recognised by those words, and by the environment check, which finds GPUs beside a CPU build.
A checkpoint that cannot be read because CUDA is not available hints at it, and may as well mean a
driver or a GPU that is not there.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, Signs, nobody
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    advice,
    checked,
    first_to_fail,
    quote,
    statement,
    weigh_statement,
)
from trainprobe.signatures.messages import message

WORDING = message("cpu-only-torch")
HINT = message("cpu-only-torch.hint")
CHECK = "py.torch.cuda"


def _weigh(scene: Scene) -> Weighings:
    heard, hint = statement(scene, WORDING), statement(scene, HINT)
    yield from weigh_statement(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
    elif hint is not None:
        yield quote(6, "CUDA was not available", hint)
    version = scene.given("version.torch")
    if version is not None and "+cpu" in version.value and (heard is not None or hint is not None):
        yield weighing(
            13, "environment-and-limits", f"torch is {version.value}, a CPU build", version
        )
    yield from checked(scene, CHECK, corroborates=heard is not None)


def _summary(scene: Scene) -> str:
    plan = scene.plan
    check = next(iter(scene.checks(CHECK)), None)
    given = scene.given("version.torch")
    version = plan.torch_version or (given.value if given is not None else "")
    said_version = f" {version}" if version else ""
    if check is not None:
        return check.says
    return f"torch{said_version} is a CPU build, and the job asks for a GPU"


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    more = advice(scene, CHECK)
    return (
        fix(
            "Install the CUDA build",
            *(
                more
                or (
                    (
                        f"{python} -m pip install --force-reinstall torch   (from the index that"
                        " pytorch.org names for your CUDA)"
                    ),
                )
            ),
            verify=(
                f"{python} -c 'import torch; print(torch.version.cuda, torch.cuda.is_available())'"
            ),
        ),
    )


CAUSE = Cause(
    id="cpu-only-torch",
    title="torch is a CPU build",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="python -c 'import torch; print(torch.version.cuda)'",
    refines="user-exception",
    wording=WORDING,
    ready=Signs(
        says=("has a torch without GPUs", "have a torch without GPUs"),
        checks=("py.torch.cuda", "py.torch"),
    ),
)
