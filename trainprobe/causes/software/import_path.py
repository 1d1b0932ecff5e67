"""Another module is imported than the one that was meant.

A file of one's own called `random.py` or `torch.py`, a folder named after an installed package, an
interpreter of another environment: the first entry of the import path wins. Errors look like a
missing attribute of a well-known package, or "No module named" for one that is installed.

It is recognised by the environment check, which lists what hides what, and by Python's hint at a
partially initialised module.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix, short
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

WORDING = message("import-path")
HINT = message("import-path.hint")
WELL_KNOWN = message("import-path.well-known")
NO_PACKAGE = message("import-path.no-package")
BARE = message("import-path.bare")
CHECKS = ("py.shadow", "py.copies", "py.editable")


def _weigh(scene: Scene) -> Weighings:
    heard, hidden = statement(scene, WORDING), scene.checks("py.shadow")
    yield from checked(scene, *CHECKS, corroborates=heard is not None)
    if heard is not None:
        # Circular imports inside the user's own package say the same, so the words alone name
        # nothing.
        if hidden or statement(scene, f"{HINT}|{WELL_KNOWN}|{NO_PACKAGE}") is not None:
            yield from weigh_statement(scene, WORDING)
        else:
            yield quote(10, "Python hints at a name that is taken twice", heard)
        yield from first_to_fail(scene)
    elif (bare := statement(scene, BARE)) is not None:
        yield quote(13, "A name that every release has is not there", bare)
        yield weighing(6, "source", "Something else of that name is imported", bare.fact)
        yield from first_to_fail(scene)
    yield from _other_interpreter(scene)
    clean = [check for check in scene.checks("py.shadow", bad_only=False) if check.status == "ok"]
    if clean and not hidden:
        yield weighing(-10, "environment-and-limits", clean[0].says.rstrip("."), *clean)


def _other_interpreter(scene: Scene) -> Weighings:
    """An installed package, by its known version, that is not found."""
    missing = statement(scene, r"No module named '?(?P<module>\w+)")
    version = (
        scene.given(f"version.{missing.match.group('module')}") if missing is not None else None
    )
    if missing is not None and version is not None:
        says = (
            f"{missing.match.group('module')} {version.value} is installed in the environment that"
            " was described, and is not found"
        )
        yield weighing(13, "environment-and-limits", says, missing.fact, version)
        yield from first_to_fail(scene)


def _summary(scene: Scene) -> str:
    check = scene.failed_check(*CHECKS)
    heard = statement(scene, WORDING) or statement(scene, BARE)
    if check is not None:
        return check.says
    if heard:
        return f"A module is hidden by another of its name: {short(heard.text, 140)}"
    return "A module is hidden by another of its name"


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    see = f"{python} -c 'import sys, torch; print(sys.executable, torch.__file__)'"
    return (
        fix("Rename what hides the module", *advice(scene, *CHECKS), verify=see),
        fix(
            "Let launcher and script share one interpreter",
            f"{python} -m torch.distributed.run …   instead of a torchrun from another environment",
            verify=see,
        ),
    )


CAUSE = Cause(
    id="import-path",
    title="The wrong module or interpreter is used",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="python -c 'import <MODULE>; print(<MODULE>.__file__)' from the job's folder",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
    ready=ReadySigns(
        says=("imports the wrong module", "import the wrong module"), checks=("py.shadow",)
    ),
)
