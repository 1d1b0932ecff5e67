"""Interfaces that are not there: of an installed package it is another release, of one's own it is the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainprobe.causes.scene import Scene, weighing
from trainprobe.causes.spoken import first_to_fail, said
from trainprobe.causes.words import short
from trainprobe.facts import RankException
from trainprobe.model.diagnosis import Weighing
from trainprobe.stacks.places import is_library

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


def moved(scene: Scene) -> Iterator[Weighing]:
    """An interface that is not there: of an installed package it is another release, of one's own it is the code."""
    name, gone, argument, origin = said(scene, MOVED), said(scene, GONE), said(scene, ARGUMENT), scene.origin
    if name is not None:
        file = name.match.group("file") or ""
        installed = bool(INSTALLED.search(file)) or name.match.group("module") in WELL_KNOWN
        points = 13 if installed and "unknown location" not in file else 6  # also a circular import or a local file of that name
        yield weighing(points, "suspects-log", f"A name is not where it is expected: {short(name.text)}", name.fact)
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
