"""Compares the ranks' losses with one process's; names what differs."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import torch

from _model_stress.findings import HUGE, gap
from _model_stress.module_state import ATTRIBUTE, StateEntry, differing
from _model_stress.rank_processes import Rounds, in_one_process, on_ranks, placed
from _model_stress.replicas import RankResult, SingleResult, of_parts, traced_rank, with_attributes


def compared_losses(rounds: Rounds, item: SingleResult, replicas: List[RankResult]) -> bool:
    tested, findings, limit = rounds.tested, rounds.findings, rounds.tested.tolerance
    if tested.traits.noisy:
        findings.note(
            "eval() is not deterministic: losses and gradients of N ranks are not compared with"
            " one process's."
        )
        return False
    apart = {rank: off(other.loss, item.parts[rank]) for rank, other in enumerate(replicas)}
    rank = max(apart, key=lambda rank: apart[rank])
    findings.number(
        "ranks.loss_difference", min(apart[rank], HUGE), "of the loss", ranks=rounds.ranks
    )
    if apart[rank] <= limit:
        return _whole(rounds, item)
    if all(off(other.loss, item.loss) <= limit for other in replicas):
        findings.note(
            "Each rank's loss is that of the whole batch: the model gathers the others' rows."
        )
        return False
    if off(item.loss, torch.stack(item.parts).mean()) > limit and any(
        off(other.loss, replicas[0].loss) <= limit for other in replicas[1:]
    ):
        findings.note(
            "The loss couples rows, and the ranks gather them: it differs from one process's."
        )
        return False
    return _pinned(rounds, item, replicas, rank, apart[rank])


def _whole(rounds: Rounds, item: SingleResult) -> bool:
    """Whether the loss of the whole batch is the mean of the ranks' losses."""
    findings, limit, mean = rounds.findings, rounds.tested.tolerance, torch.stack(item.parts).mean()
    if off(item.loss, mean) <= limit or not item.own_loss:
        return False
    if off(item.loss, mean * rounds.ranks) > limit:
        findings.note(
            "The loss of a batch is not the mean of its parts' losses (it couples rows, or counts"
            " them unevenly): N ranks train on the mean of the parts."
        )
        return False
    sentence = (
        f"The loss is a sum over the batch, not a mean: with the batch split over {rounds.ranks}"
        f" ranks the loss is {float(mean):.6g} instead of {float(item.loss):.6g}, and DDP's"
        f" gradients are 1/{rounds.ranks} of one process's."
    )
    return not findings.held(
        "ranks.loss",
        off(mean, item.loss),
        limit,
        "of the loss",
        sentence,
        what="loss",
        where="loss",
        ranks=rounds.ranks,
        ratio=1 / rounds.ranks,
    )


def _pinned(
    rounds: Rounds, item: SingleResult, replicas: List[RankResult], rank: int, worst: float
) -> bool:
    findings, batch, seed = rounds.findings, rounds.batch, rounds.seed
    carried = _attributes(rounds, replicas, rank)
    if carried:
        for name in carried[:4]:
            sentence = (
                f"{name} is neither a parameter nor a buffer: DDP does not copy it, and rank"
                f" {rank}'s loss differs by {worst:.2g} because of it."
            )
            if "serialization" in rounds.tested.request.suites:
                findings.note(sentence, warn=True)  # it is not saved either, which is told there
            else:
                findings.held(
                    "ranks.loss",
                    worst,
                    rounds.tested.tolerance,
                    "of the loss",
                    sentence,
                    what="attribute",
                    where=name,
                    rank=rank,
                )
        return True
    findings.step("where the ranks differ")
    must = in_one_process(
        rounds, lambda _, step: of_parts(placed(rounds, 0), batch, rounds.ranks, seed, step)
    )
    are = on_ranks(rounds, lambda me, step: traced_rank(placed(rounds, me), batch, me, seed, step))
    where: Optional[str] = None
    if must.how == "done" and are[rank].how == "done":
        where = _own_fault(
            are[rank].value["value"], must.value["value"][rank], rounds.tested.tolerance
        )
    ratios = [
        float(other.loss) / float(part) if float(part) else math.nan
        for other, part in zip(replicas, item.parts)
    ]
    off = all(abs(ratio - ratios[0]) <= 1e-3 * abs(ratios[0]) for ratio in ratios)
    sentence = (
        f"Rank {rank}'s loss is {float(replicas[rank].loss):.6g}, and one process's of the same"
        f" rows {float(item.parts[rank]):.6g}"
    )
    sentence += f": all ranks' are {ratios[0]:.4g} times one process's" if off else ""
    sentence += (
        f"; {where} gets equal inputs and gives different outputs."
        if where
        else "; only the model's own forward differs."
        if where == ""
        else "."
    )
    what, place = ("module", where) if where else ("loss", "loss")
    findings.held(
        "ranks.loss",
        worst,
        rounds.tested.tolerance,
        "of the loss",
        sentence,
        what=what,
        where=place,
        rank=rank,
        ranks=rounds.ranks,
        ratio=ratios[rank],
    )
    return True


def _attributes(rounds: Rounds, replicas: List[RankResult], rank: int) -> List[str]:
    """The attributes that the ranks' seeds drew differently and that explain the loss."""
    other = replicas[rank or 1 % len(replicas)]
    mine: Dict[str, StateEntry] = {
        name: other.begin[name]
        for name in differing(other.begin, replicas[0].begin)
        if other.begin[name].kind == ATTRIBUTE
    }
    if not mine or not rank:
        return []
    reported = in_one_process(
        rounds,
        lambda _, step: with_attributes(
            placed(rounds, 0), rounds.batch, rank, rounds.seed, mine, step
        ),
    )
    if reported.how != "done":
        return []
    losses: Dict[str, Any] = reported.value["value"]
    if off(losses[""], replicas[rank].loss) > rounds.tested.tolerance:
        return []
    return [
        name
        for name, loss in losses.items()
        if name and off(loss, losses["none"]) > 0 and name != "none"
    ]


def _own_fault(this: List[Any], other: List[Any], limit: float) -> Optional[str]:
    """The innermost module with equal inputs and other outputs; "" for the model, None for none."""
    theirs = {(call.module, call.turn): call for call in other}

    def worst(mine: Dict[str, Any], twins: Dict[str, Any]) -> float:
        return max(
            [gap(tensor, twins[name]) for name, tensor in mine.items() if name in twins] + [0.0]
        )

    for call in this:
        twin = theirs.get((call.module, call.turn))
        if twin is not None and worst(call.inputs, twin.inputs) <= limit < worst(
            call.outputs, twin.outputs
        ):
            return str(call.module)
    return None


def off(this: Any, other: Any) -> float:
    """Relative difference of two losses."""
    return abs(float(this) - float(other)) / max(abs(float(other)), 1e-6)
