"""Resuming: what the second run lacks, found by copying state of the first until both are equal."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from _model_stress.batches import Batch
from _model_stress.findings import HUGE, Findings, gap
from _model_stress.module_state import (
    ATTRIBUTE,
    PARAMETER,
    StateEntry,
    apart,
    described,
    differing,
    put,
    snapshot,
)
from _model_stress.tested_model import TestedModel
from _model_stress.training import TrainingRun, read

# of the run that goes on; of them before the checkpoint from which the second one does
STEPS, BEFORE = (4, 2)
FAR = (0, 10, 1000, 100_000)  # values that a counter may come to


class Trained(NamedTuple):
    """The uninterrupted run: its state when built, at its first checkpoint and at its end."""

    course: TrainingRun
    batches: List[Batch]
    begin: Dict[str, StateEntry]
    half: Dict[str, StateEntry]
    end: Dict[str, StateEntry]
    data: bytes
    last: bytes


def compared_runs(
    tested: TestedModel, findings: Findings, trained: Trained, explained: Set[str]
) -> Optional[Set[str]]:
    """Return the names of what was told; None where training is too noisy to say."""
    findings.step("resume")
    registered = [name for name, held in trained.end.items() if held.kind != ATTRIBUTE]

    def run_on(names: Set[str]) -> TrainingRun:
        state, _ = read(trained.data, tested.device)
        course = TrainingRun(tested, tested.request.seed + 1)
        course.loaded(state, trained.course.others)
        put(course.model, {name: trained.half[name] for name in names if name in trained.half})
        course.go_on(trained.batches[BEFORE:])
        return course

    def equal(names: Set[str]) -> bool:
        return measured_or_infinite(lambda: _drift(trained, run_on(names), registered)) == 0

    again = run_on(explained)
    drift = _drift(trained, again, registered)
    findings.number("resume.drift", drift if math.isfinite(drift) else HUGE, "of the largest value")
    if drift == 0:
        return set()
    state, _ = read(trained.data, tested.device)
    start = TrainingRun(tested, tested.request.seed + 1)
    start.loaded(state, trained.course.others)
    theirs = snapshot(start.model)
    candidates = [name for name in differing(trained.half, theirs) if name not in explained]
    needed = smallest(lambda names: equal(names | explained), candidates, findings)
    if needed:
        for name in needed:
            tell(
                findings,
                name,
                trained._replace(end=trained.half),
                theirs,
                drift,
                "the losses of training",
            )
        return set(needed)
    findings.step("train again")
    twin = TrainingRun(tested, tested.request.seed)
    twin.go_on(trained.batches)
    noise = _drift(trained, twin, registered)
    if drift <= 10 * noise:
        findings.note(
            f"Two equal runs of training differ by {noise:.2g} and the resumed one by {drift:.2g}:"
            " the difference may be noise."
        )
        return None
    return _unexplained(findings, trained, again, max(drift, 1e-12))


def _unexplained(
    findings: Findings, trained: Trained, again: TrainingRun, drift: float
) -> Set[str]:
    mine, theirs = trained.course.losses[BEFORE:], again.losses
    for place, (item, other) in enumerate(zip(mine, theirs)):
        if gap(other, item) > 0:
            sentence = (
                f"The loss of step {BEFORE + 1 + place} is {float(item):.7g} in the uninterrupted"
                f" run and {float(other):.7g} in the resumed one."
            )
            findings.differs(
                "resume.loss", drift, sentence, what="loss", where=f"step {BEFORE + 1 + place}"
            )
            return {"loss"}
    after = snapshot(again.model)
    name = next(
        (name for name in differing(trained.end, after) if trained.end[name].kind != ATTRIBUTE), ""
    )
    kind = trained.end[name].kind if name else PARAMETER
    sentence = (
        f"After {STEPS} steps {name} differs from what it is after {BEFORE} steps, a save, a load"
        f" and {STEPS - BEFORE} steps."
    )
    findings.differs(f"resume.{kind}", drift, sentence, what=kind, where=name)
    return {name}


def compared_counters(
    tested: TestedModel, findings: Findings, trained: Trained, explained: Set[str]
) -> None:
    """Does the loss depend on counters that each step moves and no load restores?"""
    findings.step("counters")
    state, _ = read(trained.data, tested.device)
    fresh = TrainingRun(tested, tested.request.seed + 1)
    fresh.loaded(state, trained.course.others)
    theirs = snapshot(fresh.model)
    for name in differing(trained.half, theirs):
        now, begin = trained.half[name], trained.begin.get(name)
        if (
            name in explained
            or name in state["state_dict"]
            or begin is None
            or set(now.leaves) != {""}
            or name not in trained.end
            or findings.left_s() < 1
        ):
            continue
        values = [_number(item.leaves.get("")) for item in (begin, now, trained.end[name])]
        if any(item is None for item in values) or len(set(values)) < 3:
            continue
        moved = _sensitive(tested, fresh, name, now, trained.batches[0])
        if moved is None:
            findings.note(
                f"Training increments {name}, no state dict has it, and nothing appears to depend"
                " on it."
            )
            continue
        sentence = (
            f"Training moves {name}, no state dict has it, and the loss depends on it: it differs"
            f" at {moved}."
        )
        what = "state.not_saved" if now.tensors else "resume.attribute"
        findings.counted(what, 1, "values", sentence, what=now.kind, where=name)
        explained.add(name)


def _sensitive(
    tested: TestedModel, fresh: TrainingRun, name: str, now: StateEntry, batch: Batch
) -> Optional[Any]:
    """Return the first value at which the training loss is another, None where none was seen."""
    keep = snapshot(fresh.model)

    def loss(value: Any) -> Any:
        put(fresh.model, keep)
        put(fresh.model, {name: StateEntry(now.kind, {"": value})})
        return tested.run(fresh.model.train(), batch, seed=5).loss.detach()

    try:
        base = loss(now.leaves[""])
        if gap(loss(now.leaves[""]), base) > 0:
            return None
    except Exception:  # what was put in fits no longer: nothing is known
        return None
    for distant in FAR:
        value = (
            now.leaves[""].clone().fill_(distant) if now.tensors else type(now.leaves[""])(distant)
        )
        if measured_or_infinite(lambda value=value: gap(loss(value), base)) not in (0, math.inf):  # type: ignore[misc]
            return distant
    return None


def _number(value: Any) -> Optional[float]:
    if hasattr(value, "numel"):
        return float(value) if value.numel() == 1 and not value.is_complex() else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _drift(trained: Trained, other: TrainingRun, registered: List[str]) -> float:
    """The largest difference of losses, parameters and buffers after the last steps; 0 if equal."""
    after = snapshot(other.model)
    mine = trained.course.losses[-len(other.losses) :]
    apart_ = [gap(item, two) for item, two in zip(other.losses, mine)]
    apart_ += [
        gap(after[name].leaves[""], trained.end[name].leaves[""]) if name in after else math.inf
        for name in registered
    ]
    return max(apart_)


def tell(
    findings: Findings,
    name: str,
    trained: Trained,
    theirs: Dict[str, StateEntry],
    worst: float,
    depends: str,
) -> None:
    held = trained.end[name]
    keys = apart(held, theirs[name]) if name in theirs else list(held.leaves)
    where = described(name, keys)
    kind = {PARAMETER: "parameter", ATTRIBUTE: "attribute"}.get(held.kind, held.kind)
    counts = not held.tensors and (
        name not in trained.begin or bool(apart(trained.begin[name], held))
    )
    if counts:
        sentence = f"Training moves {where}, {depends} depend on it, and no state dict has it."
        findings.differs("resume.attribute", max(worst, 1e-12), sentence, what=kind, where=where)
    else:
        sentence = (
            f"{where} ({kind}) is not in the state dict, and {depends} depend on it: copied over,"
            f" they are equal; without it they differ by {worst:.2g}."
        )
        findings.differs("state.not_saved", max(worst, 1e-12), sentence, what=kind, where=where)


def measured_or_infinite(measured: Callable[[], float]) -> float:
    """What was measured; infinite where the model does not run with what was put into it."""
    try:
        return measured()
    except Exception:  # the user's code with a value it never had
        return math.inf


def smallest(
    equal: Callable[[Set[str]], bool], candidates: List[str], findings: Findings
) -> List[str]:
    """A smallest set of candidates with which it is equal; [] if not even all suffice. QuickXplain
    (Junker 2004): asks some k log(n/k) times for k of n.
    """
    if not candidates or not equal(set(candidates)):
        return []

    def explain(chosen: List[str], rest: List[str], grown: bool) -> List[str]:
        if grown and equal(set(chosen)):
            return []
        if len(rest) == 1 or findings.left_s() < 1:
            return rest
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        later = explain(chosen + first, second, bool(first))
        return explain(chosen + later, first, bool(later)) + later

    return explain([], candidates, grown=False)
