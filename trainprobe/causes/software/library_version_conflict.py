"""Installed Python packages do not fit each other.

A package compiled for NumPy 1 beside NumPy 2, a transformers that wants another tokenizers, an interface that moved between two
releases. The program fails at import, or at the first call.

It is recognised by the packages' own words about versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said, spoken
from trainprobe.causes.words import fix, sentence, short
from trainprobe.facts import Facts, ImportTried, RankException
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.stacks.places import is_library
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
# A name that is not where it was, in a package that somebody installed: another release of it, unless a file of one's own hides it.
MOVED = r"cannot import name '(?P<name>\w+)' from (?!partially)'(?P<module>\w+)[\w.]*'(?: \((?P<file>[^)]{1,300})\))?"
GONE = r"module '(?P<module>torch|transformers|accelerate|datasets|deepspeed|peft|torchvision|torchtext|huggingface_hub|tokenizers|pytorch_lightning|lightning|wandb|pkgutil|collections|inspect)(?:\.[\w.]{1,100})?' has no attribute '(?P<name>\w+)'"
ARGUMENT = r"\(\) got an unexpected keyword argument '(?P<name>\w+)'"
WELL_KNOWN = frozenset(
    {"torch", "torchvision", "torchaudio", "transformers", "accelerate", "datasets", "huggingface_hub", "tokenizers", "peft", "trl", "deepspeed", "diffusers",
     "numpy", "scipy", "sklearn", "pandas", "pyarrow", "lightning", "pytorch_lightning", "torchmetrics", "typing_extensions", "urllib3", "pydantic", "packaging"}
)  # fmt: skip
CLASSES = r"\b(?:Accelerator|TrainingArguments|Trainer|SFTTrainer|LoraConfig|DataLoader|GradScaler)\.__init__\(\)"
INSTALLED = re.compile(r"(?:site|dist)-packages")


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
    yield from _moved(scene)


def _moved(scene: Scene) -> Iterator[Weighing]:
    """An interface that is not there: of an installed package it is another release, of one's own it is the code."""
    moved, gone, argument, origin = said(scene, MOVED), said(scene, GONE), said(scene, ARGUMENT), scene.origin
    if moved is not None:
        file = moved.match.group("file") or ""
        installed = bool(INSTALLED.search(file)) or moved.match.group("module") in WELL_KNOWN
        points = 13 if installed and "unknown location" not in file else 6  # also a circular import or a local file of that name
        yield weighing(points, "suspects-log", f"A name is not where it is expected: {short(moved.text)}", moved.fact)
    elif gone is not None and (gone.match.group("module") != "torch" or _by_library(origin)):
        yield weighing(13 if _by_library(origin) else 10, "suspects-log", f"An interface is not there: {short(gone.text)}", gone.fact)
    elif argument is not None and (_by_library(origin) or re.search(CLASSES, argument.text)):
        yield weighing(13, "suspects-log", f"A library passes what another does not know: {short(argument.text)}", argument.fact)
    else:
        return
    yield from first_to_fail(scene)


def _by_library(origin: RankException | None) -> bool:
    """Was it raised in a line of an installed package, rather than in one's own?"""
    return origin is not None and bool(origin.frames) and is_library(origin.frames[-1])


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
