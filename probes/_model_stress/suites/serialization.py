"""Does a saved model come back unchanged, and does training resume exactly? Compares four steps
with two steps, a save, a load into a model of another seed, and two steps.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Set

from _model_stress import checkpoint_formats
from _model_stress.findings import HUGE, Findings, gap
from _model_stress.module_state import (
    ATTRIBUTE,
    PARAMETER,
    StateEntry,
    apart,
    described,
    differing,
    parted,
    put,
    sharing,
    snapshot,
    unregistered,
)
from _model_stress.resuming import (
    BEFORE,
    STEPS,
    Trained,
    compared_counters,
    compared_runs,
    measured_or_infinite,
    smallest,
    tell,
)
from _model_stress.tested_model import TestedModel
from _model_stress.training import TrainingRun, read
from _shared.child_program import summary_of

ROWS = 4


def run(tested: TestedModel, findings: Findings) -> None:
    findings.step("train")
    trained = _train(tested, findings)
    findings.step("load")
    state, error = read(trained.last, tested.device)
    if error is not None:
        findings.note(
            f"The checkpoint cannot be read with weights_only=True: {str(error)[:200]}", warn=True
        )
    fresh = TrainingRun(tested, tested.request.seed + 1)
    fine = _state(findings, trained, fresh, state)
    explained: Set[str] = set()
    done = ["a state dict loads into a model of another seed"]
    if fine:
        evaluated = _evaluated(tested, findings, trained, fresh)
        done[0] += " with equal outputs" if evaluated is not None else ""
        explained |= evaluated or set()
        explained |= _untrained(findings, trained, explained)
        if sharing(trained.course.model) != sharing(fresh.model):
            findings.note(
                "The load changes which tensors the model shares: the resumed run is not compared.",
                warn=True,
            )
        else:
            resumed = compared_runs(tested, findings, trained, explained)
            done += ["4 steps equal 2 + save + load + 2"] if resumed is not None else []
            explained |= resumed or set()
            compared_counters(tested, findings, trained, explained)
        if not explained:
            checkpoint_formats.compared(tested, findings, trained.course.model, trained.batches[0])
    findings.summary(", and ".join(done) if fine and not explained else "")


def _train(tested: TestedModel, findings: Findings) -> Trained:
    seed = tested.request.seed
    course = TrainingRun(tested, seed)
    if not any(item.requires_grad for item in course.model.parameters()):
        findings.skip("the model has no trainable parameter")
    if getattr(course.model, "automatic_optimization", True) is False:
        findings.skip("the Lightning module steps its optimizers itself, which needs its trainer")
    batches = [tested.batch(ROWS, seed=step, model=course.model) for step in range(STEPS)]
    begin, ties = snapshot(course.model), sharing(course.model)
    course.go_on(batches[:BEFORE])
    if not all(bool(item.isfinite()) for item in course.losses):
        findings.skip("the loss is not finite after two steps of training")
    half = snapshot(course.model)
    data = course.saved()
    changed = [
        name for name in differing(half, snapshot(course.model)) if half[name].kind != ATTRIBUTE
    ]
    for name in changed[:3]:
        sentence = f"Saving changes {name} of the model that is saved."
        findings.counted("state.differs", 1, "tensors", sentence, what=half[name].kind, where=name)
    half = snapshot(course.model)
    course.go_on(batches[BEFORE:])
    end = snapshot(course.model)
    lost = parted(ties, course.model)
    if lost and "tying" in tested.request.suites:
        findings.skip(
            f"training unties {' and '.join(lost[:3])}, which the tying suite reports: a fresh"
            " model has them tied, so no load can be equal"
        )
    return Trained(course, batches, begin, half, end, data, course.saved())


# ---- the state dict


def _state(findings: Findings, trained: Trained, fresh: TrainingRun, state: Dict[str, Any]) -> bool:
    """Load into the fresh model and compare all that is registered; return whether it is equal."""
    before = {name: id(item) for name, item in fresh.model.named_parameters(remove_duplicate=False)}
    ties = sharing(fresh.model)
    saved, expected = set(state["state_dict"]), set(fresh.model.state_dict())
    problems = 0
    try:
        fresh.loaded(state, trained.course.others)
    except Exception as error:  # the user's own loading may raise anything
        problems += _keys(findings, trained, saved, expected, state, fresh)
        if not problems:
            sentence = f"load_state_dict(strict=True) into a fresh model raises {summary_of(error)}"
            findings.raised("state.raises", error, sentence, what="module")
        return False
    mine, theirs = trained.end, snapshot(fresh.model)
    for name in differing(
        {name: held for name, held in mine.items() if held.kind != ATTRIBUTE}, theirs
    ):
        kind, key = mine[name].kind, name in saved
        if not key and (kind != PARAMETER or not _dropped(saved, expected, name)):
            continue  # a buffer that is not saved: told where the outputs depend on it
        problems += 1
        if key:
            held = state["state_dict"][name]
            wrong = not hasattr(held, "shape") or bool(
                apart(mine[name], StateEntry(kind, {"": held}))
            )
            sentence = f"{name} is not restored: " + (
                "the state dict and the model differ." if wrong else "the load changes it."
            )
            value = (
                gap(theirs[name].leaves[""], mine[name].leaves[""]) if name in theirs else math.inf
            )
            findings.differs("state.differs", max(value, 1e-12), sentence, what=kind, where=name)
        else:
            sentence = f"{name} is not in the state dict, and loading does not notice."
            findings.counted("state.missing", 1, "tensors", sentence, what=kind, where=name)
    after = {name: id(item) for name, item in fresh.model.named_parameters(remove_duplicate=False)}
    replaced = [name for name in before if name in after and before[name] != after[name]]
    lost = parted(ties, fresh.model) if "tying" in trained.course.tested.request.suites else []
    if lost and not problems:
        sentence = (
            f"the load unties {' and '.join(lost[:3])}, which the tying suite reports: later steps"
            " are not compared"
        )
        if set(replaced) <= set(lost):
            findings.skip(sentence)
        findings.note(sentence, warn=True)
        replaced = [name for name in replaced if name not in lost]
    if replaced and trained.course.tested.kind != "lightning" and not problems:
        sentence = (
            f"Loading replaces {replaced[0]}, so an optimizer made before the load trains the old"
            " parameter."
        )
        findings.counted(
            "resume.parameter",
            len(replaced),
            "parameters",
            sentence,
            what="parameter",
            where=replaced[0],
            all=", ".join(replaced[:12]),
        )
        return False
    return not problems


def _dropped(saved: Set[str], expected: Set[str], name: str) -> bool:
    """Is a parameter without a key lost? Some models save it under another name."""
    return name not in saved and name not in expected


def _keys(
    findings: Findings,
    trained: Trained,
    saved: Set[str],
    expected: Set[str],
    state: Dict[str, Any],
    fresh: TrainingRun,
) -> int:
    missing, unexpected = expected - saved, saved - expected
    try:
        keys = fresh.loaded(state, trained.course.others, strict=False)
        missing |= set(getattr(keys, "missing_keys", ()))
        unexpected |= set(getattr(keys, "unexpected_keys", ()))
    except Exception:  # shapes: below
        pass
    kinds = {name: held.kind for name, held in trained.end.items()}
    problems = (
        ("state.missing", missing, "is missing in the state dict of a trained model"),
        ("state.unexpected", unexpected, "is in the state dict of a trained model only"),
    )
    for finding, names, problem in problems:
        for name in sorted(names)[:4]:
            sentence = f"{name} {problem}: load_state_dict(strict=True) into a fresh one fails."
            place = {"what": kinds.get(name, "parameter"), "where": name}
            findings.counted(finding, len(names), "keys", sentence, **place)
    mine, theirs = state["state_dict"], fresh.model.state_dict()
    shapes = [
        name
        for name in mine
        if name in theirs
        and getattr(mine[name], "shape", None) != getattr(theirs[name], "shape", None)
        and name not in missing | unexpected
    ]
    for name in shapes[:4]:
        sentence = (
            f"{name} is saved as {tuple(mine[name].shape)}, and a fresh model has it as"
            f" {tuple(theirs[name].shape)}."
        )
        findings.counted(
            "state.differs", 1, "tensors", sentence, what=kinds.get(name, "parameter"), where=name
        )
    return len(missing) + len(unexpected) + len(shapes)


# ---- what the outputs depend on and no state dict has


def _evaluated(
    tested: TestedModel, findings: Findings, trained: Trained, fresh: TrainingRun
) -> Optional[Set[str]]:
    """Compare outputs in eval(); return the reported names, None if they cannot be compared."""
    findings.step("outputs after the load")
    item, other, batch = trained.course.model.eval(), fresh.model.eval(), trained.batches[0]
    mine = tested.run(item, batch, seed=9)
    if tested.run(item, batch, seed=9).gap(mine) > 0:
        findings.note(
            "Two runs in eval() with one seed differ, so outputs before and after a load are not"
            " compared."
        )
        return None
    worst = tested.run(other, batch, seed=9).gap(mine)
    findings.number(
        "state.outputs", worst if math.isfinite(worst) else HUGE, "of the largest value"
    )
    if worst == 0:
        return set()
    theirs = snapshot(other)
    candidates = differing(trained.end, theirs)

    def equal(names: Set[str]) -> bool:
        put(other, {name: held for name, held in theirs.items() if name in candidates})
        put(other, {name: trained.end[name] for name in names})
        return measured_or_infinite(lambda: tested.run(other, batch, seed=9).gap(mine)) == 0

    needed = smallest(equal, candidates, findings)
    if not needed:
        sentence = (
            f"After a load all parameters are equal, but the outputs differ by {worst:.2g} of the"
            " largest value."
        )
        findings.differs("state.differs", worst, sentence, what="module", where="")
        return {""}
    for name in needed:
        tell(findings, name, trained, theirs, worst, "the outputs in eval()")
    return set(needed)


def _untrained(findings: Findings, trained: Trained, explained: Set[str]) -> Set[str]:
    """Tensors with gradients that are no parameters, even if equal in all fresh models."""
    found = {
        name: keys
        for name, keys in unregistered(trained.course.model).items()
        if name not in explained
    }
    for name, keys in found.items():
        where = described(name, keys)
        sentence = (
            f"{where} gets a gradient but is no registered parameter: no optimizer trains it, and"
            " no state dict has it (nn.ParameterList, nn.ModuleList)."
        )
        findings.counted(
            "state.not_saved", len(keys), "tensors", sentence, what="parameter", where=where
        )
    return set(found)
