"""One rank against N: the same batch in one process and split over DDP's ranks must come to the same loss, gradients and parameters.

Each rank's weights are drawn by a seed of its own, so that what DDP does not carry over shows. What one process must come to is the mean over the ranks'
parts, so that losses which couple rows are no fault.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shutil
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist

from _stress import fleet
from _stress.batches import Batch
from _stress.holdings import ATTRIBUTE, Held, differing
from _stress.look import Look, gap
from _stress.replicas import (
    PER_RANK,
    STEPS,
    One,
    Rank,
    of_parts,
    one_process,
    one_rank,
    registered,
    traced_rank,
    two_steps,
    with_attributes,
)
from _stress.subject import Subject

ACROSS = 1e-9  # relative, between ranks: all of them get the sum of one reduction
REDUCTION = "Expected to have finished reduction"  # torch/csrc/distributed/c10d/reducer.cpp
ECHOES = ("Connection closed", "Connection reset", "Timed out", "timed out", "Broken pipe", "application timeout")


class Rounds(NamedTuple):
    """How processes are started: `fresh()` is a folder for a round."""

    subject: Subject
    look: Look
    batch: Batch
    ranks: int
    backend: str
    seed: int
    fresh: Callable[[], str]

    @property
    def left_s(self) -> float:
        return max(2.0, 0.8 * self.look.left_s())


def run(subject: Subject, look: Look) -> None:
    if not dist.is_available() or not dist.is_gloo_available():
        look.skip("this torch has no gloo")
    torch.set_num_threads(1)  # OpenMP's threads do not live through a fork, and the ranks share the host
    ranks, backend, device = subject.asked.ranks, "gloo", subject.device
    subject.device = "cpu"  # whoever touches CUDA before the fork cannot use it after
    if device.startswith("cuda") and torch.cuda.device_count() >= ranks and dist.is_nccl_available():
        backend = "nccl"
    elif device.startswith("cuda"):
        look.note(f"{ranks} ranks need {ranks} GPUs for NCCL: compared on the CPU with gloo.")
    look.step("batch")
    batch = subject.batch(PER_RANK * ranks, seed=5, model=subject.build(subject.asked.seed))
    if batch.rows != PER_RANK * ranks:
        look.skip("its batches have no axis of rows that could be split over ranks")
    events = os.environ.get("TRAINPROBE_EVENTS", "")
    folder, count = tempfile.mkdtemp(prefix="trainprobe-ranks-", dir=os.path.dirname(events) or None), itertools.count()

    def fresh() -> str:
        path = os.path.join(folder, str(next(count)))
        os.mkdir(path)
        return path

    try:
        _compare(Rounds(subject, look, batch, ranks, backend, subject.asked.seed, fresh))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compare(rounds: Rounds) -> None:
    subject, look, batch, ranks, seed = rounds.subject, rounds.look, rounds.batch, rounds.ranks, rounds.seed
    look.step("one process")
    alone = fleet.alone(lambda rank, step: one_process(_placed(rounds, rank), batch, ranks, seed, step), rounds.fresh(), rounds.left_s)
    if alone.how != "done":
        look.skip(f"one process does not get through the batch ({alone.step}: {alone.why})")
    one: One = alone.value["value"]
    if one.frozen:
        look.skip("the model has no parameter that is trained")
    look.step(f"{ranks} ranks")
    find = bool(one.unused or one.sometimes)
    answers = fleet.together(
        lambda rank, step: one_rank(_placed(rounds, rank), batch, rank, seed, step, find_unused=find), ranks, rounds.fresh(), rounds.left_s, rounds.backend
    )
    if any(one_.how != "done" for one_ in answers):
        _failed(look, answers)
        return
    replicas: List[Rank] = [one_.value["value"] for one_ in answers]
    found = _begun(look, replicas) or _losses(rounds, one, replicas) or _gradients(rounds, one, replicas) or _steps(look, one, replicas, subject.tolerance)
    found = _unused(rounds, one) or found
    if not found:
        look.summary(f"{ranks} ranks agree with one")


def _placed(rounds: Rounds, rank: int) -> Subject:
    """In a rank: the subject on the rank's own device."""
    if rounds.backend == "nccl":
        rounds.subject.device = f"cuda:{max(0, rank)}"
    return rounds.subject


def _failed(look: Look, answers: List[fleet.Answer]) -> None:
    """One process got through and the ranks did not. The first cause is the rank that did not only lose its peer or wait for it."""
    if all(one.step in ("", "meet") for one in answers if one.how != "done"):
        raise RuntimeError("; ".join(f"rank {one.rank}: {one.why}" for one in answers if one.how != "done"))
    bad = [one for one in answers if one.how != "done"]
    own = [one for one in bad if one.how == "raised" and not any(word in one.why for word in ECHOES)]
    raised = [one for one in bad if one.how == "raised"]
    first = (own or [one for one in bad if one.how == "died"] or raised or bad)[0]
    error = first.error or {}
    where = str(error.get("module", ""))
    others = ", ".join(f"rank {one.rank} {one.how} at {one.step!r}" for one in answers if one is not first)
    if first.how == "stood":
        raise RuntimeError(f"rank {first.rank} did not end ({first.step}); {others}")
    waits = first.how == "raised" and not own
    says = f"One process gets through; of {len(answers)} ranks, rank {first.rank} " + (
        f"waits in vain for the others at {first.step!r}" if waits else f"fails at {first.step!r}"
    )
    says += (f" in {where}" if where else "") + f" ({first.why[:300]}); {others}."
    name = "ranks.waits" if waits else "ranks.raises"
    labels = {"rank": first.rank, "type": str(error.get("type", "")), "message": str(error.get("message", ""))}
    look.held(name, 1, 0, "", says, what="module", where=where, **labels)


# ---- what DDP carries over


def _begun(look: Look, replicas: List[Rank]) -> bool:
    first, found = registered(replicas[0].begin), False
    for rank, other in enumerate(replicas):
        mine = registered(other.begin)
        apart = [name for name in first if name not in mine or gap(mine[name], first[name]) > 0]
        for name in apart[:4] if not found else ():
            kind = replicas[0].begin[name].kind
            says = f"Rank {rank}'s {name} is not that of rank 0 after DDP was made: DDP does not carry it over (_ddp_params_and_buffers_to_ignore?)."
            value = gap(mine[name], first[name]) if name in mine else math.inf
            look.held(f"ranks.{kind}", value, 0, "of the largest value", says, what=kind, where=name, rank=rank)
        found = found or bool(apart)
    return found


# ---- losses


def _losses(rounds: Rounds, one: One, replicas: List[Rank]) -> bool:
    subject, look, limit = rounds.subject, rounds.look, rounds.subject.tolerance
    if subject.traits.noisy:
        look.note("The model is not still in eval(): losses and gradients of N ranks are not compared with one process's.")
        return False
    apart = {rank: _off(other.loss, one.parts[rank]) for rank, other in enumerate(replicas)}
    rank = max(apart, key=lambda rank: apart[rank])
    look.number("ranks.loss_difference", min(apart[rank], 1e30), "of the loss", ranks=rounds.ranks)
    if apart[rank] <= limit:
        return _whole(rounds, one)
    if all(_off(other.loss, one.loss) <= limit for other in replicas):
        look.note("Each rank's loss is that of the whole batch: the model gathers the others' rows.")
        return False
    if _off(one.loss, torch.stack(one.parts).mean()) > limit and any(_off(other.loss, replicas[0].loss) <= limit for other in replicas[1:]):
        look.note("The loss couples rows, and the ranks gather them: it is another one than in one process.")
        return False
    return _pinned(rounds, one, replicas, rank, apart[rank])


def _whole(rounds: Rounds, one: One) -> bool:
    """Is the loss of the whole batch the mean of the ranks' losses?"""
    look, limit, mean = rounds.look, rounds.subject.tolerance, torch.stack(one.parts).mean()
    if _off(one.loss, mean) <= limit or not one.own_loss:
        return False
    if _off(one.loss, mean * rounds.ranks) > limit:
        look.note(
            "The loss of a batch is not the mean of its parts' losses (it couples rows, or counts them unevenly): N ranks train on the mean of the parts."
        )
        return False
    says = (
        f"The loss is a sum over the batch, not a mean: with the batch split over {rounds.ranks} ranks the loss is {float(mean):.6g} instead of "
        f"{float(one.loss):.6g}, and DDP's gradients are 1/{rounds.ranks} of one process's."
    )
    return not look.held("ranks.loss", _off(mean, one.loss), limit, "of the loss", says, what="loss", where="loss", ranks=rounds.ranks, ratio=1 / rounds.ranks)


def _pinned(rounds: Rounds, one: One, replicas: List[Rank], rank: int, worst: float) -> bool:
    look, batch, seed = rounds.look, rounds.batch, rounds.seed
    carried = _attributes(rounds, replicas, rank)
    if carried:
        for name in carried[:4]:
            says = f"{name} is no parameter and no buffer: DDP does not carry it over, and rank {rank}'s loss is another by {worst:.2g} for it."
            if "serialization" in rounds.subject.asked.suites:
                look.note(says, warn=True)  # it is not saved either, which is told there
            else:
                look.held("ranks.loss", worst, rounds.subject.tolerance, "of the loss", says, what="attribute", where=name, rank=rank)
        return True
    look.step("where the ranks differ")
    must = fleet.alone(lambda _, step: of_parts(_placed(rounds, 0), batch, rounds.ranks, seed, step), rounds.fresh(), rounds.left_s)
    are = fleet.together(lambda me, step: traced_rank(_placed(rounds, me), batch, me, seed, step), rounds.ranks, rounds.fresh(), rounds.left_s, rounds.backend)
    where: Optional[str] = None
    if must.how == "done" and are[rank].how == "done":
        where = _own_fault(are[rank].value["value"], must.value["value"][rank], rounds.subject.tolerance)
    ratios = [float(other.loss) / float(part) if float(part) else math.nan for other, part in zip(replicas, one.parts)]
    off = all(abs(ratio - ratios[0]) <= 1e-3 * abs(ratios[0]) for ratio in ratios)
    says = f"Rank {rank}'s loss is {float(replicas[rank].loss):.6g}, and one process's of the same rows {float(one.parts[rank]):.6g}"
    says += f": all ranks' are {ratios[0]:.4g} times one process's" if off else ""
    says += f"; {where} is given the same and gives something else." if where else "; no module but the model itself differs." if where == "" else "."
    what, place = ("module", where) if where else ("loss", "loss")
    look.held("ranks.loss", worst, rounds.subject.tolerance, "of the loss", says, what=what, where=place, rank=rank, ranks=rounds.ranks, ratio=ratios[rank])
    return True


def _attributes(rounds: Rounds, replicas: List[Rank], rank: int) -> List[str]:
    """The plain attributes that the ranks' seeds drew differently and that explain the difference of the loss."""
    other = replicas[rank or 1 % len(replicas)]
    mine: Dict[str, Held] = {name: other.begin[name] for name in differing(other.begin, replicas[0].begin) if other.begin[name].kind == ATTRIBUTE}
    if not mine or not rank:
        return []
    told = fleet.alone(lambda _, step: with_attributes(_placed(rounds, 0), rounds.batch, rank, rounds.seed, mine, step), rounds.fresh(), rounds.left_s)
    if told.how != "done":
        return []
    losses: Dict[str, Any] = told.value["value"]
    if _off(losses[""], replicas[rank].loss) > rounds.subject.tolerance:
        return []
    return [name for name, loss in losses.items() if name and _off(loss, losses["none"]) > 0 and name != "none"]


def _own_fault(one: List[Any], other: List[Any], limit: float) -> Optional[str]:
    """The innermost module that is given the same and gives something else, scalars too; "" for the model itself, None where there is none."""
    theirs = {(call.module, call.turn): call for call in other}

    def worst(mine: Dict[str, Any], twins: Dict[str, Any]) -> float:
        return max([gap(tensor, twins[name]) for name, tensor in mine.items() if name in twins] + [0.0])

    for call in one:
        twin = theirs.get((call.module, call.turn))
        if twin is not None and worst(call.inputs, twin.inputs) <= limit < worst(call.outputs, twin.outputs):
            return str(call.module)
    return None


# ---- gradients and steps


def _gradients(rounds: Rounds, one: One, replicas: List[Rank]) -> bool:
    look, limit = rounds.look, rounds.subject.tolerance
    if rounds.subject.traits.noisy:
        return False
    scale = max([float(tensor.abs().max()) for tensor in one.gradients.values() if tensor.numel()] + [0.0])
    apart = {(name, rank): _far(tensor, other.gradients.get(name), scale) for rank, other in enumerate(replicas) for name, tensor in one.gradients.items()}
    look.number("ranks.gradient_difference", min(max(apart.values(), default=0.0), 1e30), "of the largest value", ranks=rounds.ranks)
    bad = {pair: value for pair, value in apart.items() if value > limit}
    late = [name for name in one.gradients if name not in replicas[0].begin]
    if bad and late:
        says = f"{late[0]} is made in the first forward: DDP was made before it and does not carry it over or average its gradients."
        if "serialization" in rounds.subject.asked.suites:
            look.note(says, warn=True)  # it does not load into a fresh model either, which is told there
        else:
            look.held("ranks.gradient", bad.get((late[0], 0), 1.0), limit, "of the largest value", says, what="parameter", where=late[0])
        return True
    if not bad:
        return False
    if all(_far(tensor, other.gradients.get(name), scale) <= limit for other in replicas for name, tensor in one.whole.items()) or (
        _off(torch.stack(one.parts).mean(), one.loss) > limit and all(_off(other.loss, one.loss) <= limit for other in replicas)
    ):
        look.note("The ranks' gradients are those of the whole batch, whose rows the model gathers, and not of the mean of its parts.")
        return False
    names = [name for name in one.gradients if any((name, rank) in bad for rank in range(rounds.ranks))]
    name = names[-1]  # gradients flow backwards: what is nearest to the loss goes wrong first
    rank = max((rank for rank in range(rounds.ranks) if (name, rank) in bad), key=lambda rank: bad[name, rank])
    mine, must = replicas[rank].gradients.get(name), one.gradients[name]
    synced = mine is not None and all(name in other.gradients and gap(other.gradients[name], mine) <= limit for other in replicas)
    says = f"Rank {rank}'s gradient of {name} is not one process's, by {min(bad[name, rank], 1e30):.2g} of the largest value"
    ratio = _ratio(mine, must)
    says += f" ({ratio:.4g} times it)" if ratio is not None else ""
    says += ", and the ranks have different ones: it is not averaged over them" if not synced else ", on all ranks alike"
    says += f"; {len(names) - 1} more parameters before it." if len(names) > 1 else "."
    labels = {"rank": rank, "ranks": rounds.ranks, "parameters": ", ".join(names[:12]), **({"ratio": ratio} if ratio is not None else {})}
    return not look.held("ranks.gradient", bad[name, rank], limit, "of the largest value", says, what="parameter", where=name, **labels)


def _steps(look: Look, one: One, replicas: List[Rank], limit: float) -> bool:
    """Parameters after a step, on all ranks and in one process, and all that is registered after steps in train(), on all ranks."""
    found = False
    first = replicas[0]
    for rank, other in enumerate(replicas):
        apart = [(name, gap(other.after[name], tensor)) for name, tensor in first.after.items() if name in other.after]
        trained, base = registered(other.trained), registered(first.trained)
        apart += [(name, gap(trained[name], tensor)) for name, tensor in base.items() if name in trained and name not in first.moved]
        worst: Optional[Tuple[str, float]] = next(((name, value) for name, value in apart if value > ACROSS), None)
        if worst is not None and not found:
            name, value = worst
            kind = first.trained[name].kind if name in first.trained else "parameter"
            says = f"After {STEPS} steps rank {rank}'s {name} differs from rank 0's by {value:.2g} of the largest value: the ranks no longer train one model."
            found = not look.held(f"ranks.{kind}", value, ACROSS, "of the largest value", says, what=kind, where=name, rank=rank)
    for name, tensor in one.after.items() if not found else ():
        value = gap(first.after[name], tensor) if name in first.after else 0.0
        if value > 10 * limit and not found:
            says = f"After a step {name} is not what it is in one process, by {value:.2g} of the largest value."
            found = not look.held("ranks.parameter", value, 10 * limit, "of the largest value", says, what="parameter", where=name)
    return found


# ---- parameters without a gradient


def _unused(rounds: Rounds, one: One) -> bool:
    look = rounds.look
    if one.sometimes:
        look.note(
            f"{one.sometimes[0]}{f' and {len(one.sometimes) - 1} more' if len(one.sometimes) > 1 else ''} get no gradient on some batches: "
            "DDP stops at the first such batch unless find_unused_parameters=True.",
            warn=True,
        )
    if not one.unused:
        return False
    tops = _tops(one)
    if not one.own_loss:
        look.note(f"{', '.join(tops)} get no gradient from a stand-in for the loss; with the model's real loss DDP may stop at them.")
        return False
    look.step("DDP as it comes")
    answers = fleet.together(
        lambda rank, step: two_steps(_placed(rounds, rank), rounds.batch, rank, rounds.seed, step), rounds.ranks, rounds.fresh(), rounds.left_s, rounds.backend
    )
    if not any(answer.how == "raised" and REDUCTION in answer.why for answer in answers):
        look.note(f"{', '.join(tops)} get no gradient, and DDP does not stop at them.")
        return False
    for top, names in list(tops.items())[:6]:
        says = f"{', '.join(names[:3])}{' and more' if len(names) > 3 else ''} of {top} never get a gradient: DDP raises in the second step ({REDUCTION})."
        look.held("unused.parameter", len(names), 0, "parameters", says, what="parameter", where=names[0], module=top, parameters=", ".join(names[:12]))
    return True


def _tops(one: One) -> Dict[str, List[str]]:
    """The unused parameters by the outermost module of which all parameters are unused."""
    used = [name for name in one.after if name not in one.unused]
    tops: Dict[str, List[str]] = {}
    for name in one.unused:
        parts = name.split(".")
        top = next((".".join(parts[:k]) for k in range(1, len(parts)) if not any(f"{other}.".startswith(".".join(parts[:k]) + ".") for other in used)), name)
        tops.setdefault(top, []).append(name)
    return tops


def _off(one: Any, other: Any) -> float:
    """Relative difference of two losses."""
    return abs(float(one) - float(other)) / max(abs(float(other)), 1e-6)


def _far(must: Any, mine: Any, scale: float) -> float:
    """How far a gradient is off, held against its own size, or a thousandth of the largest gradient where it is smaller: rounding is no fault."""
    if mine is None or mine.shape != must.shape:
        return math.inf
    if not must.numel():
        return 0.0
    if not bool(torch.isfinite(mine).all()) or not bool(torch.isfinite(must).all()):
        return 0.0 if bool(torch.equal(torch.isfinite(mine), torch.isfinite(must))) else math.inf
    return float((mine - must).abs().max()) / max(float(must.abs().max()), 1e-3 * scale, 1e-12)


def _ratio(mine: Any, must: Any) -> Optional[float]:
    """The factor between two tensors, where it is one."""
    with contextlib.suppress(RuntimeError):
        if mine is not None and float(must.abs().max()) > 0:
            ratio = float((mine * must).sum() / (must * must).sum())
            return ratio if gap(mine, must * ratio) < 1e-3 else None
    return None
