"""Installed Python packages do not fit each other.

A package compiled for NumPy 1 beside NumPy 2, a transformers that wants another tokenizers, an interface that moved between two
releases. The program fails at import, or at the first call.

It is recognised by the packages' own words about versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, ImportTried
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# numpy/core/_multiarray..., torch's NumPy bridge, pkg_resources, transformers/utils/versions.py.
WORDING = r"compiled using NumPy 1\.x cannot be run in|numpy\.core\.multiarray failed to import|_ARRAY_API not found|Numpy is not available|numpy\.dtype size changed|ContextualVersionConflict|DistributionNotFound|is required for a normal functioning of this module, but found|requires .{2,60} but you have"
MOVED = r"cannot import name '\w+' from '\w+"


def _weigh(facts: Facts, group: SuspectGroup) -> Iterator[Weighing]:
    scene = Scene(facts, group)
    heard = said(scene, WORDING)
    if heard is not None:
        if isinstance(heard.fact, ImportTried):
            yield weighing(26, "probe-outcome", f"`import {heard.fact.module}` alone fails over versions: {short(heard.text)}", heard.fact)
        else:
            yield from spoken(scene, WORDING)
        yield weighing(10, "source", "The packages themselves name the versions", heard.fact)
        yield from first_to_fail(scene)
        return
    moved = said(scene, MOVED)
    if moved is not None:  # also a circular import or a local file of that name
        yield weighing(6, "suspects-log", f"A name is not where it is expected: {short(moved.text)}", moved.fact)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, MOVED)
    return sentence(f"Installed packages do not fit each other{f': {short(heard.text, 160)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    return (
        fix(scene, "See what does not fit", f"{python} -m pip check", verify=f"{python} -m pip check"),
        fix(scene, "Pin the pair", f"{python} -m pip install 'numpy<2'   (where NumPy is named), or the version that the message asks for"),
    )


CAUSE = Cause(
    id="library-version-conflict",
    title="Python packages do not fit each other",
    means="Installed Python packages are of versions that do not fit each other.",
    telling="The NumPy 1.x and 2 notice, Numpy is not available, a required version that was not found.",
    modes=("crash", "hang", "check"),
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="pip check in the interpreter of the job",
    refines="import-failure",
    wording=WORDING,
)
