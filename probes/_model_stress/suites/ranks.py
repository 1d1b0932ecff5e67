"""One rank against N: the same batch in one process and split over DDP's ranks must come to the
same loss, gradients and parameters.

Each rank's weights are drawn by a seed of its own, so that what DDP does not carry over shows. What
one process must come to is the mean over the ranks' parts, so that losses which couple rows are no
fault.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import os
import shutil
import tempfile
from typing import Any, Dict, List, Set

import torch
import torch.distributed as dist

from _model_stress import rank_processes
from _model_stress.findings import Findings, gap
from _model_stress.generator_resets import generator_resets
from _model_stress.module_hooks import hooked
from _model_stress.rank_gradients import compared_gradients, compared_steps
from _model_stress.rank_losses import compared_losses
from _model_stress.rank_processes import Rounds, in_one_process, on_ranks, placed
from _model_stress.replicas import (
    PER_RANK,
    RankResult,
    SingleResult,
    one_process,
    one_rank,
    registered,
    two_steps,
)
from _model_stress.tested_model import TestedModel

ACROSS = 1e-9  # relative, between ranks: all of them get the sum of one reduction
REDUCTION = "Expected to have finished reduction"  # torch/csrc/distributed/c10d/reducer.cpp
TWICE = "marked ready twice"  # the same
ECHOES = (
    "Connection closed",
    "Connection reset",
    "Timed out",
    "timed out",
    "Broken pipe",
    "application timeout",
)


def run(tested: TestedModel, findings: Findings) -> None:
    if not dist.is_available() or not dist.is_gloo_available():
        findings.skip("this torch has no gloo")
    # OpenMP's threads do not live through a fork, and the ranks share the host
    torch.set_num_threads(1)
    # DDP imports it as it is made, for 1.6 s of each rank; here it is once for all (older torch has
    # none)
    with contextlib.suppress(Exception):
        importlib.import_module("torch._dynamo")
    ranks, backend, device = tested.request.ranks, "gloo", tested.device
    tested.device = "cpu"  # whoever touches CUDA before the fork cannot use it after
    if (
        device.startswith("cuda")
        and torch.cuda.device_count() >= ranks
        and dist.is_nccl_available()
    ):
        backend = "nccl"
    elif device.startswith("cuda"):
        findings.note(f"{ranks} ranks need {ranks} GPUs for NCCL: compared on the CPU with gloo.")
    _seeded(tested, findings)
    findings.step("batch")
    batch = tested.batch(PER_RANK * ranks, seed=5, model=tested.build(tested.request.seed))
    if batch.packed:
        findings.skip(
            f"the rows of a batch cannot be told apart: {batch.packed} holds several places of each"
        )
    if batch.rows != PER_RANK * ranks:
        findings.skip("its batches have no axis of rows that could be split over ranks")
    folder, count = tempfile.mkdtemp(prefix="ranks-", dir=findings.folder), itertools.count()

    def fresh() -> str:
        path = os.path.join(folder, str(next(count)))
        os.mkdir(path)
        return path

    try:
        _compare(Rounds(tested, findings, batch, ranks, backend, tested.request.seed, fresh))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _seeded(tested: TestedModel, findings: Findings) -> None:
    """Does a forward seed a generator? Dropout is then the same in every step and on every rank."""
    findings.step("seeds")
    model = tested.build(tested.request.seed)
    try:
        resets = generator_resets(tested, model, tested.batch(2, model=model))
    except Exception:  # it does not run in train(), which the steps of one process tell
        return
    for reset in resets:
        where = reset.module or type(model).__name__
        sentence = (
            f"Each forward of {where} seeds the generator of {reset.generator}: every step and"
            " every rank draws the same random numbers from there on."
        )
        findings.counted("ranks.seeded", 1, "generators", sentence, what="module", where=where)
    if not resets:
        findings.clean("ranks.seeded", "generators", what="module")


def _compare(rounds: Rounds) -> None:
    tested = rounds.tested
    findings = rounds.findings
    batch = rounds.batch
    ranks = rounds.ranks
    seed = rounds.seed
    findings.step("one process")
    alone = in_one_process(
        rounds, lambda rank, step: one_process(placed(rounds, rank), batch, ranks, seed, step)
    )
    if alone.how != "done":
        findings.skip(f"one process cannot run the batch ({alone.step}: {alone.why})")
    item: SingleResult = alone.value["value"]
    if item.frozen:
        findings.skip("the model has no trainable parameter")
    findings.step(f"{ranks} ranks")
    answers = on_ranks(
        rounds,
        lambda rank, step: one_rank(
            placed(rounds, rank), batch, rank, seed, step, find_unused=True
        ),
    )
    # a re-entrant checkpoint, which does not bear the search for unused ones
    if any(answer.how == "raised" and TWICE in answer.why for answer in answers):
        answers = on_ranks(
            rounds,
            lambda rank, step: one_rank(
                placed(rounds, rank), batch, rank, seed, step, find_unused=False
            ),
        )
    if any(answer.how != "done" for answer in answers):
        again = on_ranks(
            rounds,
            lambda rank, step: one_rank(
                placed(rounds, rank), batch, rank, seed, step, find_unused=True, telling=True
            ),
        )
        _failed(findings, again if all(a.how == b.how for a, b in zip(answers, again)) else answers)
        return
    replicas: List[RankResult] = [answer.value["value"] for answer in answers]
    found = (
        _begun(findings, replicas)
        or compared_losses(rounds, item, replicas)
        or compared_gradients(rounds, item, replicas)
        or compared_steps(rounds, item, replicas)
    )
    found = _unused(rounds, item) or found
    agree = (
        f"{ranks} ranks stay one model; they were not compared with one process"
        if tested.traits.noisy
        else f"{ranks} ranks agree with one"
    )
    findings.summary("the rest is not compared" if found else agree)


def _failed(findings: Findings, answers: List[rank_processes.Answer]) -> None:
    """Find the first cause: a rank that did more than lose or await its peer."""
    if all(item.step in ("", "meet") for item in answers if item.how != "done"):
        raise RuntimeError(
            "; ".join(f"rank {item.rank}: {item.why}" for item in answers if item.how != "done")
        )
    bad = [item for item in answers if item.how != "done"]
    own = [
        item
        for item in bad
        if item.how == "raised" and not any(text in item.why for text in ECHOES)
    ]
    raised = [item for item in bad if item.how == "raised"]
    alike = own or [item for item in bad if item.how == "died"] or raised or bad
    # of two that wait for each other, the one whose collective the model itself calls
    first = next((item for item in alike if _module_of(item)), alike[0])
    error, where = first.error or {}, _module_of(first)
    others = ", ".join(
        f"rank {item.rank} {item.how} at {item.step!r}" for item in answers if item is not first
    )
    if first.how == "stood":
        raise RuntimeError(f"rank {first.rank} did not end ({first.step}); {others}")
    waits = first.how == "raised" and not own
    sentence = f"One process works; of {len(answers)} ranks, rank {first.rank} " + (
        f"waits in vain for the others at {first.step!r}" if waits else f"fails at {first.step!r}"
    )
    sentence += (
        f" in {where}" if where and where not in first.step else ""
    ) + f" ({first.why[:300]}); {others}."
    name = "ranks.waits" if waits else "ranks.raises"
    labels = {
        "rank": first.rank,
        "type": str(error.get("type", "")),
        "message": str(error.get("message", "")),
    }
    findings.counted(name, 1, "", sentence, what="module", where=where, **labels)


def _module_of(answer: rank_processes.Answer) -> str:
    """The module whose forward was open when this rank ended, as far as that was told."""
    return str((answer.error or {}).get("module", "")) or answer.step.partition(", module ")[2]


# ---- what DDP carries over


def _begun(findings: Findings, replicas: List[RankResult]) -> bool:
    first, found = registered(replicas[0].begin), False
    for rank, other in enumerate(replicas):
        mine = registered(other.begin)
        apart = [name for name in first if name not in mine or gap(mine[name], first[name]) > 0]
        for name in apart[:4] if not found else ():
            kind = replicas[0].begin[name].kind
            sentence = (
                f"Rank {rank}'s {name} differs from rank 0's after DDP was made: DDP does not copy"
                " it (_ddp_params_and_buffers_to_ignore?)."
            )
            value = gap(mine[name], first[name]) if name in mine else math.inf
            findings.differs(f"ranks.{kind}", value, sentence, what=kind, where=name, rank=rank)
        found = found or bool(apart)
    return found


# ---- parameters without a gradient


def _unused(rounds: Rounds, item: SingleResult) -> bool:
    findings = rounds.findings
    if item.sometimes:
        findings.note(
            f"{item.sometimes[0]}{f' and {len(item.sometimes) - 1} more' if len(item.sometimes) > 1 else ''}"  # noqa: E501
            " get no gradient on some batches: DDP stops at the first such batch unless"
            " find_unused_parameters=True.",
            warn=True,
        )
    if not item.unused:
        return False
    tops = _tops(item)
    # a library's model without a loss is none that is trained as it is
    plain = not item.own_loss and rounds.tested.kind != "transformers"
    cut = _called(rounds, tops) if plain else {}
    if cut:
        # the stand-in reaches every output: what none of them gives a gradient no loss reaches
        tops = cut
    elif not item.own_loss:
        findings.note(
            f"{', '.join(tops)} get no gradient from a stand-in for the loss; with the model's real"
            " loss DDP may stop at them."
        )
        return False
    findings.step("DDP as it comes")
    answers = on_ranks(
        rounds,
        lambda rank, step: two_steps(placed(rounds, rank), rounds.batch, rank, rounds.seed, step),
    )
    if not any(answer.how == "raised" and REDUCTION in answer.why for answer in answers):
        findings.note(f"{', '.join(tops)} get no gradient, and DDP does not stop at them.")
        return False
    for top, names in list(tops.items())[:6]:
        sentence = (
            f"{', '.join(names[:3])}{' and more' if len(names) > 3 else ''} of {top} never get a"
            f" gradient: DDP raises in the second step ({REDUCTION})."
        )
        findings.counted(
            "unused.parameter",
            len(names),
            "parameters",
            sentence,
            what="parameter",
            where=names[0],
            module=top,
            parameters=", ".join(names[:12]),
        )
    return True


def _called(rounds: Rounds, tops: Dict[str, List[str]]) -> Dict[str, List[str]]:
    """Those of `tops` that are modules whose forward the model calls."""
    model = rounds.tested.build(rounds.seed).train()
    called: Set[str] = set()

    def enter(name: str, _args: Any, _kwargs: Any) -> None:
        called.add(name)

    with hooked(model, enter, lambda _name, _output: None):
        rounds.tested.run(model, rounds.batch)
    return {name: found for name, found in tops.items() if name in called}


def _tops(item: SingleResult) -> Dict[str, List[str]]:
    """The unused parameters by the outermost module of which all parameters are unused."""
    used = [name for name in item.after if name not in item.unused]
    tops: Dict[str, List[str]] = {}
    for name in item.unused:
        parts = name.split(".")
        top = next(
            (
                ".".join(parts[:k])
                for k in range(1, len(parts))
                if not any(f"{other}.".startswith(".".join(parts[:k]) + ".") for other in used)
            ),
            name,
        )
        tops.setdefault(top, []).append(name)
    return tops
