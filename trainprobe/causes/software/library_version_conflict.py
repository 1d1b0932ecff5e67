"""Installed Python packages do not fit each other.

A package compiled for NumPy 1 beside NumPy 2, a transformers that wants another tokenizers, an interface that moved between two
releases. The program fails at import, or at the first call.

It is recognised by the packages' own words about versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.moved_names import ARGUMENT, GONE, MOVED, moved
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, ImportTried
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

# numpy/core/_multiarray..., torch's NumPy bridge, pkg_resources, transformers/utils/versions.py.
WORDING = (
    r"compiled using NumPy 1\.x cannot be run in|numpy\.(?:_)?core\.(?:_)?multiarray(?:_umath)? failed to import|_ARRAY_API not found|Numpy is not available"
    r"|size changed, may indicate binary incompatibility|(?:Contextual)?VersionConflict\b|DistributionNotFound|is required for a normal functioning of this module"
    r"|requires .{2,60},? but you have|module was compiled against (?:ABI|API) version 0x|module compiled against (?:ABI|API) version 0x"
    r"|module 'numpy' has no attribute '(?:bool|int|float|object|complex|str|long|typeDict|product|cumproduct|in1d|trapz|NaN|Inf|float_|unicode_|string_)\d?'"
    r"|`?np\.(?:NaN|Inf|float_|unicode_|string_|cast|infty)`? was removed in the NumPy 2|Weights only load failed(?![\s\S]{0,600}Unsupported operand)"
    r"|[Rr]equires (?:at least )?[`'\"]?(?:torch|[Pp]y[Tt]orch|transformers|accelerate|peft|datasets|deepspeed|bitsandbytes|flash[-_]attn|tokenizers|numpy|huggingface[-_]hub)"
    r"[`'\"]? ?(?:version )?(?:>=|==|<=|>|<|~=) ?\d|No module named 'numpy\._core|cannot import name '\w{1,100}' from 'numpy"
)


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
    yield from moved(scene)


def _summary(facts: Facts, group: SuspectGroup) -> str:
    scene = Scene(facts, group)
    heard = said(scene, WORDING) or said(scene, MOVED) or said(scene, GONE) or said(scene, ARGUMENT)
    return sentence(f"Installed packages do not fit each other{f': {short(heard.text, 160)}' if heard is not None else ''}")


def _fixes(facts: Facts, group: SuspectGroup) -> tuple[Fix, ...]:
    scene = Scene(facts, group)
    python = scene.plan.interpreter_path or "python"
    return (
        fix(scene, "See what does not fit", f"{python} -m pip check", verify=f"{python} -m pip check"),
        _pin(scene, python),
    )


def _pin(scene: Scene, python: str) -> Fix:
    heard = said(scene, WORDING) or said(scene, MOVED) or said(scene, GONE)
    text = heard.text.lower() if heard is not None else ""
    if "weights_only" in text:
        return fix(scene, "Say what the file may hold", "torch.load(path, weights_only=False) for a file that you trust, or pip install 'torch<2.6'")
    if "numpy" in text or "_array_api" in text:
        return fix(scene, "Pin the pair", f"{python} -m pip install 'numpy<2'   or newer builds of the package that the traceback names")
    module = heard.match.groupdict().get("module") if heard is not None else None
    name = heard.match.groupdict().get("name") if heard is not None else None
    if module:
        return fix(scene, f"Take the {module} that has {name or 'it'}", f"{python} -m pip show {module}; {python} -m pip install '{module}==VERSION'")
    return fix(scene, "Pin the pair", f"{python} -m pip install 'PACKAGE==VERSION'   with the version that the message asks for")


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
    accounts_for=("user-exception",),
    wording=WORDING,
)
