"""Another module is imported than the one that was meant.

A file of one's own called `random.py` or `torch.py`, a folder named after an installed package, an interpreter of another environment: the first entry
of the import path wins. Errors look like a missing attribute of a well-known package, or "No module named" for one that is installed.

It is recognised by the environment check, which lists what hides what, and by Python's hint at a partially initialised module.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import advice, checked, first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# CPython's Lib/importlib and moduleobject.c: the hint that a local file may hide a module.
WORDING = r"partially initialized module '\w+|consider renaming '[^']+' since it has the same name as|\(unknown location\)"
CHECKS = ("py.shadow", "py.copies", "py.editable")


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard, hidden = said(scene, WORDING), scene.checks("py.shadow")
    yield from checked(scene, *CHECKS, corroborates=heard is not None)
    if heard is not None:
        # Circular imports inside the user's own package say the same, so the words alone name nothing.
        if hidden:
            yield from spoken(scene, WORDING)
        else:
            yield weighing(10, "suspects-log", f"Python hints at a name that is taken twice: {short(heard.text)}", heard.fact)
        yield from first_to_fail(scene)
    clean = [check for check in scene.checks("py.shadow", bad_only=False) if check.status == "ok"]
    if clean and not hidden:
        yield weighing(-10, "environment-and-limits", clean[0].says.rstrip("."), *clean)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    check, heard = next(iter(scene.checks(*CHECKS)), None), said(scene, WORDING)
    return sentence(
        check.says
        if check is not None
        else f"A module is hidden by another of its name: {short(heard.text, 140)}"
        if heard
        else "A module is hidden by another of its name"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    see = f"{python} -c 'import sys, torch; print(sys.executable, torch.__file__)'"
    return (
        fix(scene, "Rename what hides the module", *advice(scene, *CHECKS), verify=see),
        fix(
            scene,
            "Let launcher and script share one interpreter",
            f"{python} -m torch.distributed.run …   instead of a torchrun from another environment",
            verify=see,
        ),
    )


CAUSE = Cause(
    id="import-path",
    title="The wrong module or interpreter is used",
    means="The import path leads to another module, or another interpreter, than was meant.",
    telling="A local file or folder that hides a package; a partially initialised module; No module named for one that is installed.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="python -c 'import MODULE; print(MODULE.__file__)' from the job's folder",
    refines="import-failure",
    wording=WORDING,
)
