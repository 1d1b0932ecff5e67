"""An old compiled file, or an old installed copy, runs instead of the source that was edited.

A .pyc whose check was turned off, a .pyc without its source, an installed copy beside the working tree: the program behaves like an older version of
itself, and tracebacks show lines that do not match.

It is recognised by the environment check, which compares compiled files with their sources.
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

# CPython's importlib when a compiled file is of another version.
WORDING = r"bad magic number in '\S+'|bad marshal data \("
CHECK = "py.bytecode"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    yield from spoken(scene, WORDING)
    if heard is not None:
        yield from first_to_fail(scene)
    yield from checked(scene, CHECK, corroborates=heard is not None)
    fresh = [check for check in scene.checks(CHECK, bad_only=False) if check.status == "ok"]
    if fresh and not scene.checks(CHECK) and heard is None:
        yield weighing(-26, "environment-and-limits", fresh[0].says.rstrip("."), *fresh)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    check, heard = next(iter(scene.checks(CHECK)), None), said(scene, WORDING)
    return sentence(
        check.says if check is not None else f"An old compiled file is imported: {short(heard.text, 140)}" if heard else "An old compiled file is imported"
    )


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    return (
        fix(scene, "Delete the compiled files", *(advice(scene, CHECK) or ("find . -name __pycache__ -type d -prune -exec rm -r {} +",))),
        fix(scene, "Install the working tree itself", "pip install -e .   (after pip uninstall of the old copy)"),
    )


CAUSE = readied(
    Cause(
        id="stale-bytecode",
        title="Old compiled code runs",
        means="An old compiled file runs instead of the source beside it.",
        telling="A compiled file that does not match its source and would be used all the same.",
        modes=("crash", "hang", "check"),
        weigh=_weigh,
        summary=_summary,
        fixes=_fixes,
        ranks=nobody,
        would_settle="python -B -c 'import <MODULE>; print(<MODULE>.__file__, <MODULE>.__cached__)'",
        refines="import-failure",
        accounts_for=("user-exception",),
        wording=WORDING,
    ),
    Signs(says=("has compiled files that are older than their source", "have compiled files that are older than their source"), checks=("py.bytecode",)),
)
