"""Do the ranks come to one process's losses? Where not: the attribute, the module or the loss that is another."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import torch

from _stress import fleet
from _stress.holdings import ATTRIBUTE, Held, differing
from _stress.look import HUGE, gap
from _stress.replicas import One, Rank, of_parts, traced_rank, with_attributes
from _stress.rounds import Rounds, placed


def compared_losses(rounds: Rounds, one: One, replicas: List[Rank]) -> bool:
    subject, look, limit = rounds.subject, rounds.look, rounds.subject.tolerance
    if subject.traits.noisy:
        look.note("The model is not still in eval(): losses and gradients of N ranks are not compared with one process's.")
        return False
    apart = {rank: off(other.loss, one.parts[rank]) for rank, other in enumerate(replicas)}
    rank = max(apart, key=lambda rank: apart[rank])
    look.number("ranks.loss_difference", min(apart[rank], HUGE), "of the loss", ranks=rounds.ranks)
    if apart[rank] <= limit:
        return _whole(rounds, one)
    if all(off(other.loss, one.loss) <= limit for other in replicas):
        look.note("Each rank's loss is that of the whole batch: the model gathers the others' rows.")
        return False
    if off(one.loss, torch.stack(one.parts).mean()) > limit and any(off(other.loss, replicas[0].loss) <= limit for other in replicas[1:]):
        look.note("The loss couples rows, and the ranks gather them: it is another one than in one process.")
        return False
    return _pinned(rounds, one, replicas, rank, apart[rank])


def _whole(rounds: Rounds, one: One) -> bool:
    """Is the loss of the whole batch the mean of the ranks' losses?"""
    look, limit, mean = rounds.look, rounds.subject.tolerance, torch.stack(one.parts).mean()
    if off(one.loss, mean) <= limit or not one.own_loss:
        return False
    if off(one.loss, mean * rounds.ranks) > limit:
        look.note(
            "The loss of a batch is not the mean of its parts' losses (it couples rows, or counts them unevenly): N ranks train on the mean of the parts."
        )
        return False
    says = (
        f"The loss is a sum over the batch, not a mean: with the batch split over {rounds.ranks} ranks the loss is {float(mean):.6g} instead of "
        f"{float(one.loss):.6g}, and DDP's gradients are 1/{rounds.ranks} of one process's."
    )
    return not look.held("ranks.loss", off(mean, one.loss), limit, "of the loss", says, what="loss", where="loss", ranks=rounds.ranks, ratio=1 / rounds.ranks)


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
    must = fleet.alone(lambda _, step: of_parts(placed(rounds, 0), batch, rounds.ranks, seed, step), rounds.fresh(), rounds.left_s)
    are = fleet.together(lambda me, step: traced_rank(placed(rounds, me), batch, me, seed, step), rounds.ranks, rounds.fresh(), rounds.left_s, rounds.backend)
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
    told = fleet.alone(lambda _, step: with_attributes(placed(rounds, 0), rounds.batch, rank, rounds.seed, mine, step), rounds.fresh(), rounds.left_s)
    if told.how != "done":
        return []
    losses: Dict[str, Any] = told.value["value"]
    if off(losses[""], replicas[rank].loss) > rounds.subject.tolerance:
        return []
    return [name for name, loss in losses.items() if name and off(loss, losses["none"]) > 0 and name != "none"]


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


def off(one: Any, other: Any) -> float:
    """Relative difference of two losses."""
    return abs(float(one) - float(other)) / max(abs(float(other)), 1e-6)
