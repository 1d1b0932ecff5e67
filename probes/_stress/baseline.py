"""The first look at the model, in a child of its own: does it run at all, and what the suites have to know of it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any, Dict, List, Set, Tuple

import torch

import _given
from _memory import memory_limits
from _stress.fan_in import fan_ins
from _stress.look import Look, gap
from _stress.subject import Ran, Subject, Traits, max_length_of
from _stress.tracing import apart_by_itself, traced

COPIES = 12  # of the weights that the largest suite holds at a time: two models in float64, gradients, two moments of Adam


def first_look(subject: Subject, look: Look) -> Dict[str, Any]:
    """Run the model once as it is and a few times in other ways. Raises what the user's model raises, and GivenError.

    Return `kind` and `traits` as of Subject, and `imported`: the modules of installed packages that were imported only as the model was built and run.
    """
    known = set(sys.modules)
    look.step("build")
    model = subject.build(subject.asked.seed)
    size = sum(one.numel() * one.element_size() for one in model.parameters())
    free = memory_limits().free if subject.device == "cpu" else torch.cuda.mem_get_info()[0]
    if size * COPIES > free:
        raise _given.GivenError(
            f"The weights take {size / 2**30:.1f} GiB, the suites {COPIES} times that, and {free / 2**30:.1f} GiB are free; name a small configuration of it."
        )
    look.step("sample")
    batch = subject.batch(2, model=model)
    look.step("forward")
    began = time.perf_counter()
    ran = subject.run(model, batch)
    took_s = time.perf_counter() - began
    look.step("backward")
    loss = subject.run(model, batch, grad=True).loss
    if loss.requires_grad:
        loss.backward()
    look.step("forward again")
    began = time.perf_counter()
    subject.run(model, batch)
    took_s = min(took_s, time.perf_counter() - began)  # the first pass allocates, and imports what it needs
    look.step("fan-ins")
    with contextlib.suppress(Exception):  # what the model forbids to be watched has the fan-ins of its shapes
        subject.traits = subject.traits._replace(fan_ins=fan_ins(model, lambda: subject.run(model, batch, grad=True)))
    longest, name = max_length_of(model)
    noisy = _is_noisy(subject, look)
    traits = Traits(
        doubles=_doubles(subject, look, ran),
        noisy=noisy,
        max_length=longest,
        max_length_name=name,
        own_loss=ran.own_loss,
        parameters=sum(one.numel() for one in model.parameters()),
        forward_s=took_s,
        fan_ins=subject.traits.fan_ins,
    )
    subject.traits = traits
    look.step("other sizes")
    resizes = _resizes(subject)
    couples, loss_couples = (False, False) if noisy else _couples(subject)
    traits = traits._replace(resizes=resizes, couples_rows=couples, loss_couples=loss_couples)
    return {"kind": subject.kind, "traits": traits._asdict(), "imported": _installed(set(sys.modules) - known)}


def _installed(names: Set[str]) -> List[str]:
    """Those of packages that were installed: the user's own are left as the import found them."""
    files = {name: str(getattr(sys.modules.get(name), "__file__", None) or "") for name in names}
    return sorted(name for name, file in files.items() if f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file)


def _is_noisy(subject: Subject, look: Look) -> bool:
    """Two passes in eval() with other random numbers: they must not differ. The first module that does is named."""
    look.step("eval twice")
    model = subject.build(subject.asked.seed, lively=True)
    batch, runs = subject.batch(2, model=model), []
    for seed in (1, 2):
        with traced(model, inputs=True, whole=True) as calls:
            ran = subject.run(model, batch, seed=seed)
        runs.append((calls, ran))
    (one, first), (other, second) = runs
    worst = _apart(first, second)
    found = (apart_by_itself(one, other, 1e-6) if worst > 1e-6 else None) or ""
    where = found or (type(model).__name__ if worst > 1e-6 else "")
    says = f"Two runs in eval() on one batch differ by {worst:.2g} of the largest output: {where} gives other outputs for equal inputs."
    return not look.held("evaluation.difference", worst, 1e-6, "of the largest value", says, what="module", where=where)


def _apart(one: Ran, other: Ran) -> float:
    return max([gap(one.outputs[name], other.outputs[name]) for name in one.outputs if name in other.outputs] + [gap(one.loss, other.loss)])


def _doubles(subject: Subject, look: Look, single: Ran) -> bool:
    look.step("float64")
    try:
        model = subject.build(subject.asked.seed, dtype=torch.float64)
        double = subject.run(model, subject.batch(2, model=model))
    except Exception:  # any error of the user's code means that it does not calculate in float64
        return False
    outputs = list(double.outputs.values()) or [double.loss]
    return all(one.dtype == torch.float64 for one in outputs) and (not bool(torch.isfinite(single.loss)) or bool(torch.isfinite(double.loss)))


def _resizes(subject: Subject) -> bool:
    length = subject.own_length
    if length is None:
        return False
    model = subject.comparing()
    try:
        subject.run(model, subject.batch(2, max(2, length // 2), model=model))
    except Exception:  # why another length does not go through is asked by the shapes
        return False
    return True


def _couples(subject: Subject) -> Tuple[bool, bool]:
    """Does a row's output depend on the rows beside it, and is a batch's loss something else than the mean over its rows?"""
    model = subject.comparing()
    batch = subject.batch(3, seed=3, model=model)
    together = subject.run(model, batch)
    alone: List[Ran] = []
    try:
        alone = [subject.run(model, batch.take([row])) for row in range(batch.rows)]
    except Exception:  # one row alone may be refused, by a norm over rows for one
        return False, False
    outputs: Dict[str, Any] = {name: one for name, one in together.outputs.items() if one.dim() > 0 and one.shape[0] == batch.rows}
    couples = any(
        gap(torch.cat([one.outputs[name] for one in alone]), outputs[name]) > subject.tolerance for name in outputs if all(name in one.outputs for one in alone)
    )
    loss = torch.stack([one.loss.detach() for one in alone]).mean()
    return couples, not couples and gap(loss, together.loss.detach()) > subject.tolerance
