"""What one process and what each rank of a group does with the same batch: losses, gradients, a step, and what stands in the modules afterwards."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set

import torch
from torch.nn.parallel import DistributedDataParallel

from _stress.batches import Batch, leaves_of
from _stress.fleet import StandsInError
from _stress.holdings import ATTRIBUTE, Held, differing, parted, put, sharing, snapshot
from _stress.pinning import Seen, opened, own_views, recorded
from _stress.subject import Ran, Subject, sow

PER_RANK = 2  # rows
RATE = 0.1
STEPS = 2  # in train()
DRAWS = 3  # batches after which a parameter without a gradient is called unused
Step = Callable[[str], None]
Graded = Dict[str, Dict[str, List[Any]]]  # by module: gradients of what it was given (in), of what it gave (out), of its own parameters (own)


class One(NamedTuple):
    """One process: the losses of the whole batch and of each rank's part, gradients of their mean, parameters by name after a step with it.

    `whole` are the gradients of the whole batch's loss, where that is another than the mean. `unused` never got a gradient in train(), `sometimes` in
    one of some batches.
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


class Rank(NamedTuple):
    """One rank: parameters and buffers as DDP had them, loss and gradients in eval(), parameters after a step with them, and all after steps in train().

    `moved` are buffers that a forward in eval() changes, each rank by its own rows; `parted` are names whose tie with others training lost.
    """

    begin: Dict[str, Held]
    loss: Any
    gradients: Dict[str, Any]
    after: Dict[str, Any]
    trained: Dict[str, Held]
    moved: List[str]
    parted: List[str]


class Stepping(torch.nn.Module):  # type: ignore[misc]
    """What DDP wraps of a Lightning module: its forward is training_step, as Lightning's own strategy has it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
        if ignored:
            self._ddp_params_and_buffers_to_ignore = [f"model.{name}" for name in ignored]

    def forward(self, data: Any) -> Any:
        return self.model.training_step(data, 0)


class Through:
    """Looks like the model to whoever asks for its forward's signature, and calls it through DDP."""

    def __init__(self, wrapped: Any, model: Any) -> None:
        self.forward, self._wrapped = model.forward, wrapped

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped(*args, **kwargs)

    def training_step(self, data: Any, _: int) -> Any:
        return self._wrapped(data)


def part(batch: Batch, rank: int) -> Batch:
    """Return the rows of one rank."""
    return batch.take(list(range(PER_RANK * rank, PER_RANK * (rank + 1))))


def _fitting(subject: Subject, batch: Batch, model: Any) -> Batch:
    """The batch on the subject's device, in the model's type."""
    return batch.to(device=subject.device, dtype=next((one.dtype for one in model.parameters() if one.is_floating_point()), None))


def one_process(subject: Subject, batch: Batch, ranks: int, seed: int, step: Step) -> One:
    """Calculate what N ranks must come to."""
    step("build")
    model = subject.comparing(seed)
    batch = _fitting(subject, batch, model)
    step("forward and backward")
    trainable = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if not trainable:
        return One(None, [], {}, {}, {}, own_loss=False, unused=[], sometimes=[], frozen=True)
    whole = _forward(subject, model, batch)
    whole.loss.backward()
    of_whole = _gradients(model)
    model.zero_grad()
    parts = []
    for rank in range(ranks):
        ran = _forward(subject, model, part(batch, rank))
        (ran.loss / ranks).backward()
        parts.append(ran.loss.detach())
    gradients = _gradients(model)
    _descend(model)
    after = {name: one.detach().clone() for name, one in model.named_parameters()}
    step("which parameters get gradients")
    missed = _without(subject, seed, batch)
    unused = [name for name in trainable if all(name in one for one in missed)]
    sometimes = [name for name in trainable if name not in unused and any(name in one for one in [*missed, set(trainable) - set(of_whole)])]
    return One(
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


def one_rank(subject: Subject, batch: Batch, rank: int, seed: int, step: Step, *, find_unused: bool, telling: bool = False) -> Rank:
    """Do on one rank what a training script does, its weights drawn by another seed than those of the others.

    With `telling` each module is a step of its own, so that a rank that dies has died somewhere.
    """
    step("build")
    model = subject.comparing(seed + rank)
    if telling:
        _tell_modules(model, step)
    wrapped = _wrapped(subject, model, find_unused=find_unused)
    begin, ties = snapshot(model), sharing(model)
    mine = part(_fitting(subject, batch, model), rank)
    step("forward in eval()")
    loss = _forward(subject, model, mine, wrapped).loss
    step("backward in eval()")
    loss.backward()
    gradients = _gradients(model)
    _descend(model)
    after = {name: one.detach().clone() for name, one in model.named_parameters()}
    wrapped.train()
    for turn in range(STEPS):
        model.zero_grad()
        step("forward in train()")
        ran = _forward(subject, model, mine, wrapped, seed=100 * turn + rank)
        step("backward in train()")
        ran.loss.backward()
        _descend(model, RATE / 10)
    wrapped.eval()
    step("forward after train()")
    before = snapshot(model)
    with torch.no_grad():  # DDP sends rank 0's buffers round as a forward begins
        _forward(subject, model, mine, wrapped)
    trained = snapshot(model)
    moved = [name for name in differing(before, trained) if before[name].kind != ATTRIBUTE]
    return Rank(begin, loss.detach(), gradients, after, trained, moved, parted(ties, model))


def traced_rank(subject: Subject, batch: Batch, rank: int, seed: int, step: Step) -> List[Seen]:
    """Record one rank's forward, without DDP, in the weights of rank 0."""
    step("trace")
    model = subject.comparing(seed)
    with recorded(model) as calls:
        _forward(subject, model, part(_fitting(subject, batch, model), max(0, rank)))
    return calls


def with_attributes(subject: Subject, batch: Batch, rank: int, seed: int, mine: Dict[str, Held], step: Step) -> Dict[str, Any]:
    """Return the loss of a rank's rows in one process: with all of these attributes (``), with each alone (by name) and with none (`none`)."""
    step("attributes")
    model = subject.comparing(seed)
    keep, rows = snapshot(model), part(_fitting(subject, batch, model), rank)
    found: Dict[str, Any] = {}
    for name, values in [("none", {}), ("", mine), *((name, {name: held}) for name, held in mine.items())]:
        put(model, {other: keep[other] for other in mine if other in keep})
        put(model, values)
        found[name] = _forward(subject, model, rows).loss.detach()
    return found


def two_steps(subject: Subject, batch: Batch, rank: int, seed: int, step: Step) -> None:
    """Train two steps with DDP as it comes: it stops in the second one where a parameter got no gradient in the first."""
    model = subject.comparing(seed)
    wrapped = _wrapped(subject, model, find_unused=False).train()
    for turn in range(2):
        step(f"DDP's step {turn + 1}")
        _forward(subject, model, part(_fitting(subject, batch, model), rank), wrapped).loss.backward()


def of_parts(subject: Subject, batch: Batch, ranks: int, seed: int, step: Step) -> List[List[Seen]]:
    """Record in one process what each rank's forward must be."""
    step("trace")
    model = subject.comparing(seed)
    found = []
    for rank in range(ranks):
        with recorded(model) as calls:
            _forward(subject, model, part(_fitting(subject, batch, model), rank))
        found.append(calls)
    return found


def graded(subject: Subject, batch: Batch, rank: int, seed: int, step: Step) -> Graded:
    """Record the gradients at the borders of all modules, for one rank's rows in the weights of rank 0, without DDP."""
    step("gradients")
    model = subject.comparing(seed)
    found: Graded = {}

    def watch(name: str, side: str, tensor: Any) -> None:
        def note(gradient: Any) -> None:
            found.setdefault(name, {}).setdefault(side, []).append(gradient.detach().clone())

        if isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.is_floating_point():
            tensor.register_hook(note)

    def gave(name: str) -> Any:
        def record(_: Any, __: Any, output: Any) -> None:
            found.setdefault(name, {})
            for one in leaves_of(output).values():
                watch(name, "out", one)

        return record

    for name, module in model.named_modules():
        if name:
            module.register_forward_pre_hook(own_views(name, watch), with_kwargs=True)
            module.register_forward_hook(gave(name))
    _forward(subject, model, part(_fitting(subject, batch, model), rank)).loss.backward()
    for name, gradient in _gradients(model).items():
        found.setdefault(name.rpartition(".")[0], {})["own"] = [*found.get(name.rpartition(".")[0], {}).get("own", []), gradient]
    return found


def registered(held: Dict[str, Held]) -> Dict[str, Any]:
    """Return the parameters and buffers."""
    return {name: one.leaves[""] for name, one in held.items() if one.kind != ATTRIBUTE}


def _wrapped(subject: Subject, model: Any, *, find_unused: bool) -> Any:
    inner = Stepping(model) if subject.kind == "lightning" else model
    where = [torch.device(subject.device)] if subject.device.startswith("cuda:") else None
    return DistributedDataParallel(inner, device_ids=where, find_unused_parameters=find_unused).eval()


def _forward(subject: Subject, model: Any, batch: Batch, wrapped: Any = None, *, seed: int = 7) -> Ran:
    sow(seed)
    called = model if wrapped is None else Through(wrapped, model)
    with opened(model) as stack, _no_cudnn(subject):
        try:
            return subject.read(subject.call(called, batch.data))
        except Exception as error:
            raise StandsInError(error, stack.innermost()) from error


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
def _no_cudnn(subject: Subject) -> Iterator[None]:
    """The RNNs of cuDNN have no backward in eval()."""
    with torch.backends.cudnn.flags(enabled=not subject.device.startswith("cuda")):
        yield


def _gradients(model: Any) -> Dict[str, Any]:
    return {name: one.grad.detach().clone() for name, one in model.named_parameters() if one.grad is not None}


def _descend(model: Any, rate: float = RATE) -> None:
    with torch.no_grad():
        for one in model.parameters():
            if one.grad is not None:
                one.sub_(one.grad, alpha=rate)


def _without(subject: Subject, seed: int, batch: Batch) -> List[Set[str]]:
    """The parameters without a gradient in train(), for some batches."""
    model = subject.comparing(seed).train()
    found = []
    for draw in range(DRAWS):
        model.zero_grad(set_to_none=True)
        other = batch if draw == 0 else subject.batch(batch.rows, seed=50 + draw, model=model)
        _forward(subject, model, other, seed=draw).loss.backward()
        found.append({name for name, one in model.named_parameters() if one.requires_grad and one.grad is None})
    return found
