"""Installed Python packages do not fit each other.

A package compiled for NumPy 1 beside NumPy 2, a transformers that wants another tokenizers, an
interface that moved between two releases. The program fails at import, or at the first call.

It is recognised by the packages' own words about versions.
"""

from __future__ import annotations

import re

from trainprobe.causes.cause import Cause, nobody
from trainprobe.causes.phrases import Fixes, fix, short
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.statements import (
    first_to_fail,
    quote,
    quote_after,
    statement,
    weigh_statement,
)
from trainprobe.facts import ImportTried, RankException
from trainprobe.model.diagnosis import Fix
from trainprobe.signatures.messages import message
from trainprobe.stacks.places import is_library

WORDING = message("library-version-conflict")


def _weigh(scene: Scene) -> Weighings:
    heard = statement(scene, WORDING)
    if heard is not None:
        if isinstance(heard.fact, ImportTried):
            says = f"`import {heard.fact.module}` alone fails over versions: {short(heard.text)}"
            yield weighing(26, "probe-outcome", says, heard.fact)
        else:
            yield from weigh_statement(scene, WORDING)
        yield weighing(10, "source", "The packages themselves name the versions", heard.fact)
        yield from first_to_fail(scene)
        return
    yield from moved(scene)


def _summary(scene: Scene) -> str:
    heard = (
        statement(scene, WORDING)
        or statement(scene, MOVED)
        or statement(scene, GONE)
        or statement(scene, ARGUMENT)
    )
    return f"Installed packages do not fit each other{quote_after(heard, 160)}"


def _fixes(scene: Scene) -> Fixes:
    python = scene.plan.interpreter_path or "python"
    return (
        fix("See what does not fit", f"{python} -m pip check", verify=f"{python} -m pip check"),
        _pin(scene, python),
    )


def _pin(scene: Scene, python: str) -> Fix:
    heard = statement(scene, WORDING) or statement(scene, MOVED) or statement(scene, GONE)
    text = heard.text.lower() if heard is not None else ""
    if "weights_only" in text:
        return fix(
            "Say what the file may hold",
            "torch.load(path, weights_only=False) for a file that you trust, or pip install"
            " 'torch<2.6'",
        )
    if "numpy" in text or "_array_api" in text:
        return fix(
            "Pin the pair",
            f"{python} -m pip install 'numpy<2'   or newer builds of the package that the traceback"
            " names",
        )
    module = heard.match.groupdict().get("module") if heard is not None else None
    name = heard.match.groupdict().get("name") if heard is not None else None
    if module:
        return fix(
            f"Take the {module} that has {name or 'it'}",
            f"{python} -m pip show {module}; {python} -m pip install '{module}==VERSION'",
        )
    return fix(
        "Pin the pair",
        f"{python} -m pip install 'PACKAGE==VERSION'   with the version that the message asks for",
    )


# Interfaces that are not there: of an installed package it is another release, of one's own it is
# the code.
MOVED = message("library-version-conflict.moved")
GONE = message("library-version-conflict.gone")
ARGUMENT = r"\(\) got an unexpected keyword argument '(?P<name>\w+)'"
WELL_KNOWN = frozenset(
    {
        "torch",
        "torchvision",
        "torchaudio",
        "transformers",
        "accelerate",
        "datasets",
        "huggingface_hub",
        "tokenizers",
        "peft",
        "trl",
        "deepspeed",
        "diffusers",
        "numpy",
        "scipy",
        "sklearn",
        "pandas",
        "pyarrow",
        "lightning",
        "pytorch_lightning",
        "torchmetrics",
        "typing_extensions",
        "urllib3",
        "pydantic",
        "packaging",
    }
)
CLASSES = r"\b(?:Accelerator|TrainingArguments|Trainer|SFTTrainer|LoraConfig|DataLoader|GradScaler)\.__init__\(\)"  # noqa: E501
INSTALLED = re.compile(r"(?:site|dist)-packages")


def moved(scene: Scene) -> Weighings:
    """A missing interface: of an installed package another release, else the user's code."""
    name = statement(scene, MOVED)
    gone = statement(scene, GONE)
    argument = statement(scene, ARGUMENT)
    origin = scene.origin
    if name is not None:
        file = name.match.group("file") or ""
        installed = bool(INSTALLED.search(file)) or name.match.group("module") in WELL_KNOWN
        # also a circular import or a local file of that name
        points = 13 if installed and "unknown location" not in file else 6
        yield quote(points, "A name is not where it is expected", name)
    elif gone is not None and (gone.match.group("module") != "torch" or _by_library(origin)):
        yield quote(13 if _by_library(origin) else 10, "An interface is not there", gone)
    elif argument is not None and (_by_library(origin) or re.search(CLASSES, argument.text)):
        yield quote(13, "A library passes what another does not know", argument)
    else:
        return
    yield from first_to_fail(scene)


def _by_library(origin: RankException | None) -> bool:
    """Was it raised in a line of an installed package, rather than in one's own?"""
    return origin is not None and bool(origin.frames) and is_library(origin.frames[-1])


CAUSE = Cause(
    id="library-version-conflict",
    title="Python packages do not fit each other",
    weigh=_weigh,
    summary=_summary,
    fixes=_fixes,
    ranks=nobody,
    would_settle="pip check in the interpreter of the job",
    refines="import-failure",
    accounts_for=("user-exception",),
    wording=WORDING,
)
