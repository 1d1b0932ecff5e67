"""An old compiled file, or an old installed copy, runs instead of the source that was edited.

A .pyc whose check was turned off, a .pyc without its source, an installed copy beside the working
tree: the program behaves like an older version of itself, and tracebacks show lines that do not
match.

It is recognised by the environment check, which compares compiled files with their sources.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import advice, checked, statement, weigh_message
from trainprobe.signatures.messages import message

WORDING = message("stale-bytecode")
CHECK = "py.bytecode"


def _weigh(scene: Scene) -> Weighings:
    heard = yield from weigh_message(scene, WORDING)
    yield from checked(scene, CHECK, corroborates=heard is not None)
    fresh = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if fresh and not scene.checks(CHECK) and heard is None:
        yield weighing(-26, "environment-and-limits", fresh[0].says.rstrip("."), *fresh)


def _summary(scene: Scene) -> str:
    check, heard = scene.failed_check(CHECK), statement(scene, WORDING)
    if check is not None:
        return check.says
    if heard:
        return f"An old compiled file is imported: {short(heard.text, 140)}"
    return "An old compiled file is imported"


def _fixes(scene: Scene) -> Fixes:
    return (
        fix(
            "Delete the compiled files",
            *(
                advice(scene, CHECK)
                or ("find . -name __pycache__ -type d -prune -exec rm -r {} +",)
            ),
        ),
        fix(
            "Install the working tree itself",
            "pip install -e .   (after pip uninstall of the old copy)",
        ),
    )


CAUSE = Cause(
    id="stale-bytecode",
    title="Old compiled code runs",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle=("python -B -c 'import <MODULE>; print(<MODULE>.__file__, <MODULE>.__cached__)'"),
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
    ready=ReadySigns(
        says=(
            "has compiled files that are older than their source",
            "have compiled files that are older than their source",
        ),
        checks=("py.bytecode",),
    ),
)
