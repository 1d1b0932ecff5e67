"""Runs one batch in one process and in each rank: losses, gradients, a step, and the state after
it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set

import torch
from torch.nn.parallel import DistributedDataParallel

from _model_stress.batches import Batch
from _model_stress.fault_location import RecordedCall, opened, recorded, watch_borders
from _model_stress.module_state import (
    ATTRIBUTE,
    StateEntry,
    differing,
    parted,
    put,
    sharing,
    snapshot,
)
from _model_stress.rank_processes import ModuleError
from _model_stress.tested_model import RunResult, TestedModel, sow

PER_RANK = 2  # rows
RATE = 0.1
STEPS = 2  # in train()
DRAWS = 3  # batches after which a parameter without a gradient is called unused
Step = Callable[[str], None]
# by module: gradients of what it was given (in), of what it gave (out), of its own parameters (own)
Graded = Dict[str, Dict[str, List[Any]]]


class SingleResult(NamedTuple):
    """One process: losses of the batch and of each rank's part, gradients of their mean, and
    parameters after a step. `whole` are the gradients of the batch's own loss. `unused` parameters
    never got a gradient in train(), `sometimes` ones missed it on some batches.
    """

    loss: Any
    parts: List[Any]
    gradients: Dict[str, Any]
    whole: Dict[str, Any]
    after: Dict[str, Any]
    own_loss: bool
    unused: List[str]
    sometimes: List[str]
    frozen: bool


class RankResult(NamedTuple):
    """One rank: state as DDP had it, loss and gradients in eval(), parameters after a step, state
    after steps in train(). `moved` buffers change in eval(), by the rank's rows; training untied
    `parted`.
    """

    begin: Dict[str, StateEntry]
    loss: Any
    gradients: Dict[str, Any]
    after: Dict[str, Any]
    trained: Dict[str, StateEntry]
    moved: List[str]
    parted: List[str]


class Stepping(torch.nn.Module):  # type: ignore[misc]
    """What DDP wraps of a Lightning module: forward is training_step, as Lightning does."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
        if ignored:
            self._ddp_params_and_buffers_to_ignore = [f"model.{name}" for name in ignored]

    def forward(self, data: Any) -> Any:
        return self.model.training_step(data, 0)


class Through:
    """Has the model's forward signature, and calls it through DDP."""

    def __init__(self, wrapped: Any, model: Any) -> None:
        self.forward, self._wrapped = model.forward, wrapped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    def training_step(self, data: Any, _: int) -> Any:
        return self._wrapped(data)


def part(batch: Batch, rank: int) -> Batch:
    """Return the rows of one rank."""
    return batch.take(list(range(PER_RANK * rank, PER_RANK * (rank + 1))))


def _fitting(tested: TestedModel, batch: Batch, model: Any) -> Batch:
    """The batch on the subject's device, in the model's type."""
    return batch.to(
        device=tested.device,
        dtype=next((item.dtype for item in model.parameters() if item.is_floating_point()), None),
    )


def one_process(
    tested: TestedModel, batch: Batch, ranks: int, seed: int, step: Step
) -> SingleResult:
    """Calculate what N ranks must come to."""
    step("build")
    model = tested.comparing(seed)
    batch = _fitting(tested, batch, model)
    step("forward and backward")
    trainable = {name: item for name, item in model.named_parameters() if item.requires_grad}
    if not trainable:
        return SingleResult(
            None, [], {}, {}, {}, own_loss=False, unused=[], sometimes=[], frozen=True
        )
    whole = _forward(tested, model, batch)
    whole.loss.backward()
    of_whole = _gradients(model)
    model.zero_grad()
    parts = []
    for rank in range(ranks):
        ran = _forward(tested, model, part(batch, rank))
        (ran.loss / ranks).backward()
        parts.append(ran.loss.detach())
    gradients = _gradients(model)
    _descend(model)
    after = {name: item.detach().clone() for name, item in model.named_parameters()}
    step("which parameters get gradients")
    missed = _without(tested, seed, batch)
    unused = [name for name in trainable if all(name in item for item in missed)]
    sometimes = [
        name
        for name in trainable
        if name not in unused
        and any(name in item for item in [*missed, set(trainable) - set(of_whole)])
    ]
    return SingleResult(
        whole.loss.detach(),
        parts,
        gradients,
        of_whole,
        after,
        own_loss=whole.own_loss,
        unused=unused,
        sometimes=sometimes,
        frozen=False,
    )


def one_rank(
    tested: TestedModel,
    batch: Batch,
    rank: int,
    seed: int,
    step: Step,
    *,
    find_unused: bool,
    telling: bool = False,
) -> RankResult:
    """Do what a script does on one rank, with its own weights. `telling`: each module is a step."""
    step("build")
    model = tested.comparing(seed + rank)
    if telling:
        _tell_modules(model, step)
    wrapped = _wrapped(tested, model, find_unused=find_unused)
    begin, ties = snapshot(model), sharing(model)
    mine = part(_fitting(tested, batch, model), rank)
    step("forward in eval()")
    loss = _forward(tested, model, mine, wrapped).loss
    step("backward in eval()")
    loss.backward()
    gradients = _gradients(model)
    _descend(model)
    after = {name: item.detach().clone() for name, item in model.named_parameters()}
    wrapped.train()
    for turn in range(STEPS):
        model.zero_grad()
        step("forward in train()")
        ran = _forward(tested, model, mine, wrapped, seed=100 * turn + rank)
        step("backward in train()")
        ran.loss.backward()
        _descend(model, RATE / 10)
    wrapped.eval()
    step("forward after train()")
    before = snapshot(model)
    with torch.no_grad():  # DDP sends rank 0's buffers round as a forward begins
        _forward(tested, model, mine, wrapped)
    trained = snapshot(model)
    moved = [name for name in differing(before, trained) if before[name].kind != ATTRIBUTE]
    return RankResult(begin, loss.detach(), gradients, after, trained, moved, parted(ties, model))


def traced_rank(
    tested: TestedModel, batch: Batch, rank: int, seed: int, step: Step
) -> List[RecordedCall]:
    """Record one rank's forward, without DDP, in the weights of rank 0."""
    step("trace")
    model = tested.comparing(seed)
    with recorded(model) as calls:
        _forward(tested, model, part(_fitting(tested, batch, model), max(0, rank)))
    return calls


def with_attributes(
    tested: TestedModel, batch: Batch, rank: int, seed: int, mine: Dict[str, StateEntry], step: Step
) -> Dict[str, Any]:
    """The loss of a rank's rows with all of these attributes (""), with each, and with `none`."""
    step("attributes")
    model = tested.comparing(seed)
    keep, rows = snapshot(model), part(_fitting(tested, batch, model), rank)
    found: Dict[str, Any] = {}
    for name, values in [
        ("none", {}),
        ("", mine),
        *((name, {name: held}) for name, held in mine.items()),
    ]:
        put(model, {other: keep[other] for other in mine if other in keep})
        put(model, values)
        found[name] = _forward(tested, model, rows).loss.detach()
    return found


def two_steps(tested: TestedModel, batch: Batch, rank: int, seed: int, step: Step) -> None:
    """Train two steps with plain DDP: the second stops where a parameter got no gradient."""
    model = tested.comparing(seed)
    wrapped = _wrapped(tested, model, find_unused=False).train()
    for turn in range(2):
        step(f"DDP's step {turn + 1}")
        _forward(tested, model, part(_fitting(tested, batch, model), rank), wrapped).loss.backward()


def of_parts(
    tested: TestedModel, batch: Batch, ranks: int, seed: int, step: Step
) -> List[List[RecordedCall]]:
    """Record in one process what each rank's forward must be."""
    step("trace")
    model = tested.comparing(seed)
    found = []
    for rank in range(ranks):
        with recorded(model) as calls:
            _forward(tested, model, part(_fitting(tested, batch, model), rank))
        found.append(calls)
    return found


def graded(tested: TestedModel, batch: Batch, rank: int, seed: int, step: Step) -> Graded:
    """Record gradients at all modules for one rank's rows, in rank 0's weights, without DDP."""
    step("gradients")
    model = tested.comparing(seed)
    found: Graded = {}

    def watch(name: str, side: str, tensor: Any) -> None:
        def note(gradient: Any) -> None:
            found[name].setdefault(side, []).append(gradient.detach().clone())

        found.setdefault(name, {})
        tensor.register_hook(note)

    with watch_borders(model, watch):
        _forward(tested, model, part(_fitting(tested, batch, model), rank)).loss.backward()
    for name, gradient in _gradients(model).items():
        found.setdefault(name.rpartition(".")[0], {}).setdefault("own", []).append(gradient)
    return found


def registered(held: Dict[str, StateEntry]) -> Dict[str, Any]:
    """Return the parameters and buffers."""
    return {name: item.leaves[""] for name, item in held.items() if item.kind != ATTRIBUTE}


def _wrapped(tested: TestedModel, model: Any, *, find_unused: bool) -> Any:
    inner = Stepping(model) if tested.kind == "lightning" else model
    where = [torch.device(tested.device)] if tested.device.startswith("cuda:") else None
    return DistributedDataParallel(
        inner, device_ids=where, find_unused_parameters=find_unused
    ).eval()


def _forward(
    tested: TestedModel, model: Any, batch: Batch, wrapped: Any = None, *, seed: int = 7
) -> RunResult:
    sow(seed)
    called = model if wrapped is None else Through(wrapped, model)
    with opened(model) as stack, _no_cudnn(tested):
        try:
            return tested.read(tested.call(called, batch.copied().data))
        except Exception as error:
            raise ModuleError(error, stack.innermost()) from error


def _tell_modules(model: Any, step: Step) -> None:
    open_: List[str] = []

    def enter(name: str) -> Any:
        def hook(*_: Any) -> None:
            open_.append(name)
            step(f"forward, module {name}")

        return hook

    def leave(*_: Any) -> None:
        open_.pop()
        step(f"forward, module {open_[-1]}" if open_ else "after forward")

    for name, module in model.named_modules():
        module.register_forward_pre_hook(enter(name or type(model).__name__))
        module.register_forward_hook(leave)


@contextlib.contextmanager
def _no_cudnn(tested: TestedModel) -> Iterator[None]:
    """The RNNs of cuDNN have no backward in eval()."""
    with torch.backends.cudnn.flags(enabled=not tested.device.startswith("cuda")):
        yield


def _gradients(model: Any) -> Dict[str, Any]:
    return {
        name: item.grad.detach().clone()
        for name, item in model.named_parameters()
        if item.grad is not None
    }


def _descend(model: Any, rate: float = RATE) -> None:
    with torch.no_grad():
        for item in model.parameters():
            if item.grad is not None:
                item.sub_(item.grad, alpha=rate)


def _without(tested: TestedModel, seed: int, batch: Batch) -> List[Set[str]]:
    """The parameters without a gradient in train(), for some batches."""
    model = tested.comparing(seed).train()
    found = []
    for draw in range(DRAWS):
        model.zero_grad(set_to_none=True)
        other = batch if draw == 0 else tested.batch(batch.rows, seed=50 + draw, model=model)
        _forward(tested, model, other, seed=draw).loss.backward()
        found.append(
            {
                name
                for name, item in model.named_parameters()
                if item.requires_grad and item.grad is None
            }
        )
    return found
