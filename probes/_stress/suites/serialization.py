"""Does a saved model come back as it was, and does training go on from it as if it had never stopped?

Two runs are compared: one of four steps, and one that begins at the checkpoint of the second step in a model that another seed drew.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

from _stress import formats
from _stress.batches import Batch
from _stress.holdings import ATTRIBUTE, PARAMETER, Held, apart, differing, put, sharing, snapshot, told, unregistered
from _stress.look import Look, gap
from _stress.subject import Ran, Subject
from _stress.training import Course, read

ROWS, STEPS = 4, 4
BEFORE = 2  # steps before the checkpoint from which the second run goes on
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


def run(subject: Subject, look: Look) -> None:
    look.step("train")
    trained = _train(subject, look)
    look.step("load")
    state, error = read(trained.last, subject.device)
    if error is not None:
        look.note(f"The checkpoint is not read with weights_only=True: {str(error)[:200]}", warn=True)
    fresh = Course(subject, subject.asked.seed + 1)
    fine = _state(look, trained, fresh, state)
    explained: Set[str] = set()
    if fine:
        explained |= _evaluated(subject, look, trained, fresh)
        explained |= _untrained(look, trained, explained)
        if sharing(trained.course.model) != sharing(fresh.model):
            look.note("Tensors that the model shares are no longer shared after the load, or the other way round: the resumed run is not compared.", warn=True)
        else:
            explained |= _resumed(subject, look, trained, explained)
            _counters(subject, look, trained, explained)
        if not explained:
            formats.compared(subject, look, trained.course.model, trained.batches[0])
    look.summary("a state dict loads into a model of another seed with equal outputs, and 4 steps equal 2 + save + load + 2" if fine and not explained else "")


def _train(subject: Subject, look: Look) -> Trained:
    seed = subject.asked.seed
    course = Course(subject, seed)
    if not any(one.requires_grad for one in course.model.parameters()):
        look.skip("the model has no parameter that is trained")
    if getattr(course.model, "automatic_optimization", True) is False:
        look.skip("the Lightning module steps its optimizers itself, which only its trainer can ask for")
    batches = [subject.batch(ROWS, seed=step, model=course.model) for step in range(STEPS)]
    begin = snapshot(course.model)
    course.go_on(batches[:BEFORE])
    if not all(bool(one.isfinite()) for one in course.losses):
        look.skip("the loss is not finite after two steps of training")
    half = snapshot(course.model)
    data = course.saved()
    changed = [name for name in differing(half, snapshot(course.model)) if half[name].kind != ATTRIBUTE]
    for name in changed[:3]:
        look.held("state.differs", 1, 0, "tensors", f"Saving changes {name} of the model that is saved.", what=half[name].kind, where=name)
    half = snapshot(course.model)
    course.go_on(batches[BEFORE:])
    end = snapshot(course.model)
    return Trained(course, batches, begin, half, end, data, course.saved())


# ---- the state dict


def _state(look: Look, trained: Trained, fresh: Course, state: Dict[str, Any]) -> bool:
    """Load into the fresh model and compare all that is registered; return whether it is as it was."""
    before = {name: id(one) for name, one in fresh.model.named_parameters(remove_duplicate=False)}
    saved, expected = set(state["state_dict"]), set(fresh.model.state_dict())
    problems = 0
    try:
        fresh.loaded(state, trained.course.others)
    except Exception as error:
        problems += _keys(look, trained, saved, expected, state, fresh)
        if not problems:
            look.raised(
                "state.raises", error, f"load_state_dict(strict=True) into a fresh model raises {type(error).__name__}: {str(error)[:300]}", what="module"
            )
        return False
    mine, theirs = trained.end, snapshot(fresh.model)
    for name in differing({name: held for name, held in mine.items() if held.kind != ATTRIBUTE}, theirs):
        kind, key = mine[name].kind, name in saved
        if not key and (kind != PARAMETER or not _dropped(saved, expected, name)):
            continue  # a buffer that is not saved: told where the outputs depend on it
        problems += 1
        if key:
            held = state["state_dict"][name]
            wrong = not hasattr(held, "shape") or bool(apart(mine[name], Held(kind, {"": held})))
            says = f"{name} comes back otherwise than it was: " + ("the state dict holds other values than the model." if wrong else "the load changes it.")
            value = gap(theirs[name].leaves[""], mine[name].leaves[""]) if name in theirs else math.inf
            look.held("state.differs", max(value, 1e-12), 0, "of the largest value", says, what=kind, where=name)
        else:
            look.held("state.missing", 1, 0, "tensors", f"{name} is not in the state dict, and the load does not miss it.", what=kind, where=name)
    after = {name: id(one) for name, one in fresh.model.named_parameters(remove_duplicate=False)}
    replaced = [name for name in before if name in after and before[name] != after[name]]
    if replaced and trained.course.subject.kind != "lightning" and not problems:
        says = f"Loading puts a new parameter in the place of {replaced[0]}, so that an optimizer made before the load trains the old one."
        look.held("resume.parameter", len(replaced), 0, "parameters", says, what="parameter", where=replaced[0], all=", ".join(replaced[:12]))
        return False
    return not problems


def _dropped(saved: Set[str], expected: Set[str], name: str) -> bool:
    """Is a parameter without a key of its own really lost? Some models save under other names: then there are keys that are no names."""
    return name not in saved and name not in expected


def _keys(look: Look, trained: Trained, saved: Set[str], expected: Set[str], state: Dict[str, Any], fresh: Course) -> int:
    missing, unexpected = expected - saved, saved - expected
    try:
        told_ = fresh.loaded(state, trained.course.others, strict=False)
        missing |= set(getattr(told_, "missing_keys", ()))
        unexpected |= set(getattr(told_, "unexpected_keys", ()))
    except Exception:  # shapes: below
        pass
    kinds = {name: held.kind for name, held in trained.end.items()}
    for name in sorted(missing)[:4]:
        says = f"{name} is missing in the state dict of a trained model: load_state_dict(strict=True) into a fresh one fails."
        look.held("state.missing", len(missing), 0, "keys", says, what=kinds.get(name, "parameter"), where=name)
    for name in sorted(unexpected)[:4]:
        says = f"{name} is in the state dict of a trained model and unknown to a fresh one: load_state_dict(strict=True) fails."
        look.held("state.unexpected", len(unexpected), 0, "keys", says, what=kinds.get(name, "parameter"), where=name)
    mine, theirs = state["state_dict"], fresh.model.state_dict()
    shapes = [
        name
        for name in mine
        if name in theirs and getattr(mine[name], "shape", None) != getattr(theirs[name], "shape", None) and name not in missing | unexpected
    ]
    for name in shapes[:4]:
        says = f"{name} is saved as {tuple(mine[name].shape)}, and a fresh model has it as {tuple(theirs[name].shape)}."
        look.held("state.differs", 1, 0, "tensors", says, what=kinds.get(name, "parameter"), where=name)
    return len(missing) + len(unexpected) + len(shapes)


# ---- what the outputs depend on and no state dict has


def _evaluated(subject: Subject, look: Look, trained: Trained, fresh: Course) -> Set[str]:
    """Compare outputs in eval(); return the names of what was told."""
    look.step("outputs after the load")
    one, other, batch = trained.course.model.eval(), fresh.model.eval(), trained.batches[0]
    mine = subject.run(one, batch, seed=9)
    if _distance(subject.run(one, batch, seed=9), mine) > 0:
        look.note("Two runs in eval() with one seed differ, so that outputs before and after a load are not compared.")
        return set()
    worst = _distance(subject.run(other, batch, seed=9), mine)
    look.number("state.outputs", worst if math.isfinite(worst) else 1e30, "of the largest value")
    if worst == 0:
        return set()
    theirs = snapshot(other)
    candidates = differing(trained.end, theirs)

    def equal(names: Set[str]) -> bool:
        put(other, {name: held for name, held in theirs.items() if name in candidates})
        put(other, {name: trained.end[name] for name in names})
        return _runs(lambda: _distance(subject.run(other, batch, seed=9), mine)) == 0

    needed = _smallest(equal, candidates, look)
    if not needed:
        says = f"After a load all parameters are equal and the outputs differ by {worst:.2g} of the largest value."
        look.held("state.differs", worst, 0, "of the largest value", says, what="module", where="")
        return {""}
    for name in needed:
        _tell(look, name, trained, theirs, worst, "the outputs in eval()")
    return set(needed)


def _tell(look: Look, name: str, trained: Trained, theirs: Dict[str, Held], worst: float, depends: str) -> None:
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


def _untrained(look: Look, trained: Trained, explained: Set[str]) -> Set[str]:
    """Tensors with gradients that are no parameters of the model, even where they are alike in all fresh models."""
    found = {name: keys for name, keys in unregistered(trained.course.model).items() if name not in explained}
    for name, keys in found.items():
        where = told(name, keys)
        says = f"{where} gets a gradient and is no registered parameter: no optimizer trains it and no state dict has it (nn.ParameterList, nn.ModuleList)."
        look.held("state.not_saved", len(keys), 0, "tensors", says, what="parameter", where=where)
    return set(found)


# ---- going on from a checkpoint


def _resumed(subject: Subject, look: Look, trained: Trained, explained: Set[str]) -> Set[str]:
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
        return _runs(lambda: _drift(trained, run_on(names), registered)) == 0

    again = run_on(explained)
    drift = _drift(trained, again, registered)
    look.number("resume.drift", drift if math.isfinite(drift) else 1e30, "of the largest value")
    if drift == 0:
        return set()
    state, _ = read(trained.data, subject.device)
    start = Course(subject, subject.asked.seed + 1)
    start.loaded(state, trained.course.others)
    theirs = snapshot(start.model)
    candidates = [name for name in differing(trained.half, theirs) if name not in explained]
    needed = _smallest(lambda names: equal(names | explained), candidates, look)
    if needed:
        for name in needed:
            _tell(look, name, trained._replace(end=trained.half), theirs, drift, "the losses of training")
        return set(needed)
    look.step("train again")
    twin = Course(subject, subject.asked.seed)
    twin.go_on(trained.batches)
    noise = _drift(trained, twin, registered)
    if drift <= 10 * noise:
        look.note(f"Two equal runs of training differ by {noise:.2g} and the resumed one by {drift:.2g}: no more than that is known.")
        return set()
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


def _counters(subject: Subject, look: Look, trained: Trained, explained: Set[str]) -> None:
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
    except Exception:
        return None
    for far in FAR:
        value = now.leaves[""].clone().fill_(far) if now.tensors else type(now.leaves[""])(far)
        if _runs(lambda value=value: gap(loss(value), base)) not in (0, math.inf):  # type: ignore[misc]
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


def _distance(one: Ran, other: Ran) -> float:
    return max([gap(one.outputs[name], other.outputs[name]) if name in one.outputs else math.inf for name in other.outputs] + [gap(one.loss, other.loss)])


def _runs(measured: Callable[[], float]) -> float:
    """What was measured; infinite where the model does not run with what was put into it."""
    try:
        return measured()
    except Exception:
        return math.inf


def _smallest(equal: Callable[[Set[str]], bool], candidates: List[str], look: Look) -> List[str]:
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
