"""Modules that seed a random generator in their forward: from then on every step and every rank
draws the same numbers.
"""

from __future__ import annotations

import random
import sys
from typing import Any, Dict, List, NamedTuple, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.module_hooks import hooked
from _model_stress.tested_model import TestedModel

SEEDS = (101, 202)
States = Dict[str, Any]


class GeneratorReset(NamedTuple):
    """A `generator` (torch, random, numpy) and the innermost module that seeds it, "" for the
    model itself.
    """

    generator: str
    module: str


def generator_resets(tested: TestedModel, model: Any, batch: Batch) -> List[GeneratorReset]:
    """The generators that a forward in train() leaves in one state, whatever their state was before
    it. Leaves the model in eval().
    """
    model.train()
    try:
        first, second = (_calls(tested, model, batch, seed) for seed in SEEDS)
    finally:
        model.eval()
    found = []
    for generator in _states():
        for (path, before, after), (other, was, has) in zip(first, second):
            if path != other:
                break  # the two passes took other ways
            if before[generator] != was[generator] and after[generator] == has[generator]:
                found.append(GeneratorReset(generator, path))
                break
    return found


def _calls(
    tested: TestedModel, model: Any, batch: Batch, seed: int
) -> List[Tuple[str, States, States]]:
    """The states before and after each call of a module, in the order in which they ended."""
    calls: List[Tuple[str, States, States]] = []
    entered: List[States] = []

    def enter(_name: str, _args: Any, _kwargs: Any) -> None:
        entered.append(_states())

    def leave(name: str, _output: Any) -> None:
        calls.append((name, entered.pop(), _states()))

    with hooked(model, enter, leave):
        tested.run(model, batch, seed=seed)
    return calls


def _states() -> States:
    """Each generator's state, in a form that can be compared."""
    found: States = {
        "torch": hash(bytes(torch.get_rng_state().tolist())),
        "random": hash(random.getstate()),
    }
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state(legacy=True)
        found["numpy"] = hash((kind, keys.tobytes(), *rest))
    return found
