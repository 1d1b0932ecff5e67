"""Another module is imported than the one that was meant.

A file of one's own called `random.py` or `torch.py`, a folder named after an installed package, an
interpreter of another environment: the first entry of the import path wins. Errors look like a
missing attribute of a well-known package, or "No module named" for one that is installed.

It is recognised by the environment check, which lists what hides what, and by Python's hint at a
partially initialised module.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.signs import (
    all_of,
    check_or,
    failed_check,
    filled,
    first_of,
    passed_check,
    stated,
)
from trainprobe.causes.statements import advice, first_to_fail, quote, statement
from trainprobe.signatures.messages import message

WORDING = message("import-path")
HINT = message("import-path.hint")
WELL_KNOWN = message("import-path.well-known")
NO_PACKAGE = message("import-path.no-package")
BARE = message("import-path.bare")
CHECKS = ("py.shadow", "py.copies", "py.editable")


def _circular(scene: Scene) -> Weighings:
    """Circular imports inside the user's own package say the same."""
    sure = statement(scene, f"{HINT}|{WELL_KNOWN}|{NO_PACKAGE}") or scene.checks("py.shadow")
    if not sure and (found := statement(scene, WORDING)) is not None:
        yield quote(10, "Python hints at a name that is taken twice", found)
        yield from first_to_fail(scene)


def _absent_name(scene: Scene) -> Weighings:
    found = statement(scene, BARE)
    if found is not None:
        yield quote(13, "A name that every release has is not there", found)
        yield weighing(6, "source", "Something else of that name is imported", found.fact)
        yield from first_to_fail(scene)


def _other_interpreter(scene: Scene) -> Weighings:
    """An installed package, by its known version, that is not found."""
    missing = statement(scene, r"No module named '?(?P<module>\w+)")
    name = missing.match.group("module") if missing is not None else ""
    version = scene.given(f"version.{name}")
    if missing is not None and version is not None:
        says = f"{name} {version.value} is installed in the described environment, and is not found"
        yield weighing(13, "environment-and-limits", says, missing.fact, version)
        yield from first_to_fail(scene)


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
    weigh=all_of(
        failed_check(*CHECKS, beside=WORDING),
        first_of(_circular, stated(WORDING), _absent_name),
        _other_interpreter,
        passed_check(-10, "py.shadow"),
    ),
    summary=check_or(
        *CHECKS,
        otherwise=filled("A module is hidden by another of its name{quoted}", WORDING, BARE),
    ),
    fixes=_fixes,
    ranks=nobody,
    would_settle="python -c 'import <MODULE>; print(<MODULE>.__file__)'   (from the job's folder)",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
    ready=ReadySigns(
        says=("imports the wrong module", "import the wrong module"), checks=("py.shadow",)
    ),
)
