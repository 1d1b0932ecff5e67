"""An old compiled file, or an old installed copy, runs instead of the source that was edited.

A .pyc whose check was turned off, a .pyc without its source, an installed copy beside the working
tree: the program behaves like an older version of itself, and tracebacks show lines that do not
match.

It is recognised by the environment check, which compares compiled files with their sources.
"""

from __future__ import annotations

from trainprobe.causes.cause import Cause, ReadySigns, nobody
from trainprobe.causes.phrases import fix
from trainprobe.causes.scene import Scene, Weighings
from trainprobe.causes.signs import all_of, check_or, failed_check, filled, passed_check, stated
from trainprobe.causes.statements import advice, statement
from trainprobe.signatures.messages import message

WORDING = message("stale-bytecode")
CHECK = "py.bytecode"
DELETE = "find . -name __pycache__ -type d -prune -exec rm -r {} +"


def _fresh(scene: Scene) -> Weighings:
    if statement(scene, WORDING) is None:
        yield from passed_check(-26, CHECK)(scene)


CAUSE = Cause(
    id="stale-bytecode",
    title="Old compiled code runs",
    weigh=all_of(stated(WORDING), failed_check(CHECK, beside=WORDING), _fresh),
    summary=check_or(CHECK, otherwise=filled("An old compiled file is imported{quoted}", WORDING)),
    fixes=lambda scene: (
        fix("Delete the compiled files", *(advice(scene, CHECK) or (DELETE,))),
        fix(
            "Install the working tree itself",
            "pip install -e .   (after pip uninstall of the old copy)",
        ),
    ),
    ranks=nobody,
    would_settle="python -B -c 'import <MODULE>; print(<MODULE>.__file__, <MODULE>.__cached__)'",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
    ready=ReadySigns(
        says=("has outdated compiled files", "have outdated compiled files"),
        checks=("py.bytecode",),
    ),
)
