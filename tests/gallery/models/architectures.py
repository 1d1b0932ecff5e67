"""The sound architectures: how each is built and fed, and how a check reaches its tokens, its
mask and its labels.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

PROGRAMS = os.path.join(os.path.dirname(__file__), "programs")


class Architecture(NamedTuple):
    """`model` and `sample` are the factories' names in the program, `root` the class of the model.
    Lengths in tokens.

    `causal`: no output may depend on a later token. `needs` names a library beside torch.
    """

    model: str
    sample: str
    root: str
    tokens: str
    mask: str = ""
    labels: str = ""
    causal: bool = False
    longest: int = 0
    tied: tuple[str, str] | None = None
    needs: str = ""


ARCHITECTURES: Mapping[str, Architecture] = {
    "decoder": Architecture(
        "make",
        "sample",
        "Decoder",
        "input_ids",
        "attention_mask",
        "labels",
        causal=True,
        longest=512,
        tied=("lm_head.weight", "embed.weight"),
    ),
    "writer": Architecture(
        "build",
        "batch",
        "GPT",
        "idx",
        "attention_mask",
        "targets",
        causal=True,
        longest=128,
        tied=("lm_head.weight", "transformer.wte.weight"),
    ),
    "reader": Architecture(
        "classifier", "texts", "Classifier", "input_ids", "attention_mask", "labels", longest=256
    ),
    "picture": Architecture("create", "images", "HybridViT", "pixels"),
    "translator": Architecture(
        "make_model",
        "make_batch",
        "Translator",
        "src",
        "src_mask",
        "labels",
        causal=True,
        longest=128,
        tied=("generator.weight", "embedding.weight"),
    ),
    "labeller": Architecture(
        "tagger", "sentences", "Tagger", "words", "mask", "tags", needs="lightning"
    ),
    "matcher": Architecture("make", "pairs", "Matcher", "questions"),
}


def source(name: str) -> str:
    """The text of the sound program."""
    with open(os.path.join(PROGRAMS, f"{name}.py"), encoding="utf-8") as file:
        return file.read()


def loaded(text: str, folder: str, name: str) -> ModuleType:
    """Write `text` as `name`.py into `folder` and import it; raises whatever the program raises."""
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return imported(path)


def imported(path: str) -> ModuleType:
    """Import a program from its file; raises whatever it raises."""
    name = os.path.splitext(os.path.basename(path))[0]
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def batch(
    architecture: Architecture, module: ModuleType, rows: int, length: int, seed: int = 0
) -> dict[str, Any]:
    """A batch of `rows` x `length` as the program's own sample gives it; images have no length."""
    import torch

    torch.manual_seed(seed)
    make = getattr(module, architecture.sample)
    return dict(make(rows) if architecture.tokens == "pixels" else make(rows, length))
