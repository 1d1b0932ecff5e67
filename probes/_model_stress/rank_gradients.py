"""Compares the ranks' gradients with one process's, and the ranks with each other; names the
parameter or module that differs.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, List, Optional, Tuple

import torch

from _model_stress.findings import HUGE, gap
from _model_stress.rank_losses import off
from _model_stress.rank_processes import Rounds, in_one_process, on_ranks, placed
from _model_stress.replicas import STEPS, Graded, RankResult, SingleResult, graded, registered

ACROSS = 1e-9  # relative, between ranks: all of them get the sum of one reduction


def compared_gradients(rounds: Rounds, item: SingleResult, replicas: List[RankResult]) -> bool:
    findings, limit = rounds.findings, rounds.tested.tolerance
    if rounds.tested.traits.noisy:
        return False
    scale = max(
        [float(tensor.abs().max()) for tensor in item.gradients.values() if tensor.numel()] + [0.0]
    )
    apart = {
        (name, rank): _difference(tensor, other.gradients.get(name), scale)
        for rank, other in enumerate(replicas)
        for name, tensor in item.gradients.items()
    }
    findings.number(
        "ranks.gradient_difference",
        min(max(apart.values(), default=0.0), HUGE),
        "of the largest value",
        ranks=rounds.ranks,
    )
    bad = {pair: value for pair, value in apart.items() if value > limit}
    late = [name for name in item.gradients if name not in replicas[0].begin]
    if bad and late:
        sentence = (
            f"{late[0]} is created in the first forward, after DDP was: DDP neither copies it nor"
            " averages its gradients."
        )
        if "serialization" in rounds.tested.request.suites:
            # it does not load into a fresh model either, which is told there
            findings.note(sentence, warn=True)
        else:
            value = bad.get((late[0], 0), 1.0)
            findings.differs(
                "ranks.gradient", value, sentence, tolerance=limit, what="parameter", where=late[0]
            )
        return True
    if not bad:
        return False
    if all(
        _difference(tensor, other.gradients.get(name), scale) <= limit
        for other in replicas
        for name, tensor in item.whole.items()
    ) or (
        off(torch.stack(item.parts).mean(), item.loss) > limit
        and all(off(other.loss, item.loss) <= limit for other in replicas)
    ):
        findings.note(
            "The ranks' gradients are those of the whole batch, whose rows the model gathers, and"
            " not of the mean of its parts."
        )
        return False
    names = [
        name for name in item.gradients if any((name, rank) in bad for rank in range(rounds.ranks))
    ]
    name = names[-1]  # gradients flow backwards: what is nearest to the loss goes wrong first
    rank = max(
        (rank for rank in range(rounds.ranks) if (name, rank) in bad),
        key=lambda rank: bad[name, rank],
    )
    mine, must = replicas[rank].gradients.get(name), item.gradients[name]
    synced = mine is not None and all(
        name in other.gradients and gap(other.gradients[name], mine) <= limit for other in replicas
    )
    sentence = (
        f"Rank {rank}'s gradient of {name} differs from one process's by"
        f" {min(bad[name, rank], HUGE):.2g} of the largest value"
    )
    ratio = _ratio(mine, must)
    sentence += f" ({ratio:.4g} times it)" if ratio is not None else ""
    sentence += (
        ", and differs between ranks: it is not averaged over them"
        if not synced
        else ", the same on all ranks"
    )
    sentence += f"; {len(names) - 1} more parameters before it." if len(names) > 1 else "."
    what, where = "parameter", name
    turned = _turned(rounds, rank) if len(names) > 1 else None
    if turned is not None:
        what, where = "module", turned
        sentence += f" {turned} receives the same gradient and passes on a different one."
    labels = {
        "rank": rank,
        "ranks": rounds.ranks,
        "parameters": ", ".join(names[:12]),
        **({"ratio": ratio} if ratio is not None else {}),
    }
    return not findings.differs(
        "ranks.gradient",
        bad[name, rank],
        sentence,
        tolerance=limit,
        what=what,
        where=where,
        **labels,
    )


def _turned(rounds: Rounds, rank: int) -> Optional[str]:
    """The innermost module at which a rank's gradients differ from one process's, if not DDP's."""
    rounds.findings.step("where the gradients differ")
    ranks = range(rounds.ranks)
    must = in_one_process(
        rounds,
        lambda _, step: [
            graded(placed(rounds, 0), rounds.batch, item, rounds.seed, step) for item in ranks
        ],
    )
    are = on_ranks(
        rounds, lambda me, step: graded(placed(rounds, me), rounds.batch, me, rounds.seed, step)
    )
    if must.how != "done" or any(item.how != "done" for item in are):
        return None
    found = [
        _turns(are[item].value["value"], must.value["value"][item], rounds.tested.tolerance)
        for item in (rank, *ranks)
    ]
    return next((item for item in found if item is not None), None)


def _turns(mine: Graded, theirs: Graded, limit: float) -> Optional[str]:
    def differ(name: str, side: str) -> bool:
        pairs = zip(mine[name].get(side, []), theirs.get(name, {}).get(side, []))
        return any(gap(item, other) > limit for item, other in pairs)

    found = [
        name
        for name in mine
        if name and not differ(name, "out") and (differ(name, "in") or differ(name, "own"))
    ]
    inner = [name for name in found if not any(other.startswith(f"{name}.") for other in found)]
    return inner[-1] if inner else None


def compared_steps(rounds: Rounds, item: SingleResult, replicas: List[RankResult]) -> bool:
    """Compare parameters after a step with one process, and all state after training on ranks."""
    findings, limit, found = rounds.findings, rounds.tested.tolerance, False
    first = replicas[0]
    lost = first.parted if "tying" in rounds.tested.request.suites else []
    if lost:
        findings.note(
            f"Training unties {' and '.join(lost[:3])}, which the tying suite reports: ranks are"
            " not compared on them afterwards.",
            warn=True,
        )
    for rank, other in enumerate(replicas):
        apart = [
            (name, gap(other.after[name], tensor))
            for name, tensor in first.after.items()
            if name in other.after
        ]
        trained, base = registered(other.trained), registered(first.trained)
        apart += [
            (name, gap(trained[name], tensor))
            for name, tensor in base.items()
            if name in trained and name not in first.moved and name not in lost
        ]
        worst: Optional[Tuple[str, float]] = next(
            ((name, value) for name, value in apart if value > ACROSS), None
        )
        if worst is not None and not found:
            name, value = worst
            kind = first.trained[name].kind if name in first.trained else "parameter"
            sentence = (
                f"After {STEPS} steps rank {rank}'s {name} differs from rank 0's by {value:.2g} of"
                " the largest value: the ranks no longer train one model."
            )
            found = not findings.differs(
                f"ranks.{kind}", value, sentence, tolerance=ACROSS, what=kind, where=name, rank=rank
            )
    agreed = all(
        gap(first.gradients[name], tensor) <= limit
        for name, tensor in item.gradients.items()
        if name in first.gradients
    )
    for name, tensor in item.after.items() if agreed and not found else ():
        value = gap(first.after[name], tensor) if name in first.after else 0.0
        if value > 10 * limit and not found:
            sentence = (
                f"After a step {name} differs from one process's by {value:.2g} of the largest"
                " value."
            )
            found = not findings.differs(
                "ranks.parameter",
                value,
                sentence,
                tolerance=10 * limit,
                what="parameter",
                where=name,
            )
    return found


def _difference(must: Any, mine: Any, scale: float) -> float:
    """A gradient's relative difference; small ones are held against a thousandth of the largest."""
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
