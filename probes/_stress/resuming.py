"""Going on from a checkpoint: what the second run lacks, found by putting things of the first into it until both are alike."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from _stress.batches import Batch
from _stress.holdings import ATTRIBUTE, PARAMETER, Held, apart, differing, put, snapshot, told
from _stress.look import HUGE, Look, gap
from _stress.subject import Subject
from _stress.training import Course, read

STEPS, BEFORE = 4, 2  # of the run that goes on; of them before the checkpoint from which the second one does
FAR = (0, 10, 1000, 100_000)  # values that a counter may come to


class Trained(NamedTuple):
    """The run that went on: what it held when it was built, at its first checkpoint and at its end, and the checkpoints of both times."""

    course: Course
    batches: List[Batch]
    begin: Dict[str, Held]
    half: Dict[str, Held]
    end: Dict[str, Held]
    data: bytes
    last: bytes


def compared_runs(subject: Subject, look: Look, trained: Trained, explained: Set[str]) -> Optional[Set[str]]:
    """Return the names of what was told; None where training is too noisy to say."""
    look.step("resume")
    registered = [name for name, held in trained.end.items() if held.kind != ATTRIBUTE]

    def run_on(names: Set[str]) -> Course:
        state, _ = read(trained.data, subject.device)
        course = Course(subject, subject.asked.seed + 1)
        course.loaded(state, trained.course.others)
        put(course.model, {name: trained.half[name] for name in names if name in trained.half})
        course.go_on(trained.batches[BEFORE:])
        return course

    def equal(names: Set[str]) -> bool:
        return measured_or_infinite(lambda: _drift(trained, run_on(names), registered)) == 0

    again = run_on(explained)
    drift = _drift(trained, again, registered)
    look.number("resume.drift", drift if math.isfinite(drift) else HUGE, "of the largest value")
    if drift == 0:
        return set()
    state, _ = read(trained.data, subject.device)
    start = Course(subject, subject.asked.seed + 1)
    start.loaded(state, trained.course.others)
    theirs = snapshot(start.model)
    candidates = [name for name in differing(trained.half, theirs) if name not in explained]
    needed = smallest(lambda names: equal(names | explained), candidates, look)
    if needed:
        for name in needed:
            tell(look, name, trained._replace(end=trained.half), theirs, drift, "the losses of training")
        return set(needed)
    look.step("train again")
    twin = Course(subject, subject.asked.seed)
    twin.go_on(trained.batches)
    noise = _drift(trained, twin, registered)
    if drift <= 10 * noise:
        look.note(f"Two equal runs of training differ by {noise:.2g} and the resumed one by {drift:.2g}: no more than that is known.")
        return None
    return _unexplained(look, trained, again, max(drift, 1e-12))


def _unexplained(look: Look, trained: Trained, again: Course, drift: float) -> Set[str]:
    mine, theirs = trained.course.losses[BEFORE:], again.losses
    for place, (one, other) in enumerate(zip(mine, theirs)):
        if gap(other, one) > 0:
            says = f"The loss of step {BEFORE + 1 + place} is {float(one):.7g} in the run that went on and {float(other):.7g} in the resumed one."
            look.held("resume.loss", drift, 0, "of the largest value", says, what="loss", where=f"step {BEFORE + 1 + place}")
            return {"loss"}
    after = snapshot(again.model)
    name = next((name for name in differing(trained.end, after) if trained.end[name].kind != ATTRIBUTE), "")
    kind = trained.end[name].kind if name else PARAMETER
    says = f"After {STEPS} steps {name} is not what it is after {BEFORE} steps, a save, a load and {STEPS - BEFORE} steps."
    look.held(f"resume.{kind}", drift, 0, "of the largest value", says, what=kind, where=name)
    return {name}


def compared_counters(subject: Subject, look: Look, trained: Trained, explained: Set[str]) -> None:
    """Numbers that each step moves and no load brings back: does the loss depend on how far they have come?"""
    look.step("counters")
    state, _ = read(trained.data, subject.device)
    fresh = Course(subject, subject.asked.seed + 1)
    fresh.loaded(state, trained.course.others)
    theirs = snapshot(fresh.model)
    for name in differing(trained.half, theirs):
        now, begin = trained.half[name], trained.begin.get(name)
        if name in explained or name in state["state_dict"] or begin is None or set(now.leaves) != {""} or name not in trained.end or look.left_s() < 1:
            continue
        values = [_number(one.leaves.get("")) for one in (begin, now, trained.end[name])]
        if any(one is None for one in values) or len(set(values)) < 3:
            continue
        moved = _sensitive(subject, fresh, name, now, trained.batches[0])
        if moved is None:
            look.note(f"Training counts {name} up, no state dict has it, and nothing was seen to depend on it.")
            continue
        says = f"Training moves {name}, no state dict has it, and the loss depends on it: it is another one at {moved}."
        what = "state.not_saved" if now.tensors else "resume.attribute"
        look.held(what, 1, 0, "values", says, what=now.kind, where=name)
        explained.add(name)


def _sensitive(subject: Subject, fresh: Course, name: str, now: Held, batch: Batch) -> Optional[Any]:
    """Return the first value at which the training loss is another, None where none was seen."""
    keep = snapshot(fresh.model)

    def loss(value: Any) -> Any:
        put(fresh.model, keep)
        put(fresh.model, {name: Held(now.kind, {"": value})})
        return subject.run(fresh.model.train(), batch, seed=5).loss.detach()

    try:
        base = loss(now.leaves[""])
        if gap(loss(now.leaves[""]), base) > 0:
            return None
    except Exception:  # what was put in fits no longer: nothing is known
        return None
    for far in FAR:
        value = now.leaves[""].clone().fill_(far) if now.tensors else type(now.leaves[""])(far)
        if measured_or_infinite(lambda value=value: gap(loss(value), base)) not in (0, math.inf):  # type: ignore[misc]
            return far
    return None


def _number(value: Any) -> Optional[float]:
    if hasattr(value, "numel"):
        return float(value) if value.numel() == 1 and not value.is_complex() else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _drift(trained: Trained, other: Course, registered: List[str]) -> float:
    """How far a run of the last steps is from the one that went on: the largest of losses, parameters and saved buffers, 0 where all are bit for bit alike."""
    after = snapshot(other.model)
    mine = trained.course.losses[-len(other.losses) :]
    apart_ = [gap(one, two) for one, two in zip(other.losses, mine)]
    apart_ += [gap(after[name].leaves[""], trained.end[name].leaves[""]) if name in after else math.inf for name in registered]
    return max(apart_)


def tell(look: Look, name: str, trained: Trained, theirs: Dict[str, Held], worst: float, depends: str) -> None:
    held = trained.end[name]
    keys = apart(held, theirs[name]) if name in theirs else list(held.leaves)
    where = told(name, keys)
    kind = {PARAMETER: "parameter", ATTRIBUTE: "attribute"}.get(held.kind, held.kind)
    counts = not held.tensors and (name not in trained.begin or bool(apart(trained.begin[name], held)))
    if counts:
        says = f"Training moves {where}, {depends} depend on it, and no state dict has it."
        look.held("resume.attribute", max(worst, 1e-12), 0, "of the largest value", says, what=kind, where=where)
    else:
        says = f"{where} ({kind}) is not in the state dict, and {depends} depend on it: copied over, they are equal; without it they differ by {worst:.2g}."
        look.held("state.not_saved", max(worst, 1e-12), 0, "of the largest value", says, what=kind, where=where)


def measured_or_infinite(measured: Callable[[], float]) -> float:
    """What was measured; infinite where the model does not run with what was put into it."""
    try:
        return measured()
    except Exception:  # the user's code with a value it never had
        return math.inf


def smallest(equal: Callable[[Set[str]], bool], candidates: List[str], look: Look) -> List[str]:
    """Return a smallest set of candidates with which it is equal; [] where not even all of them do it.

    QuickXplain (Junker 2004): asks some k log(n/k) times for k of n.
    """
    if not candidates or not equal(set(candidates)):
        return []

    def explain(given: List[str], rest: List[str], grown: bool) -> List[str]:
        if grown and equal(set(given)):
            return []
        if len(rest) == 1 or look.left_s() < 1:
            return rest
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        later = explain(given + first, second, bool(first))
        return explain(given + later, first, bool(later)) + later

    return explain([], candidates, grown=False)
