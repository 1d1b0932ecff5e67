"""Checks that show a planted fault without the tool: each is true of the faulty model and false
of the sound one.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from tests.gallery.models.architectures import Architecture, batch, imported

ROWS, LENGTH = 3, 12


class Case:
    """A program with its architecture."""

    def __init__(self, architecture: Architecture, module: ModuleType) -> None:
        self.architecture, self.module = architecture, module

    def model(self, seed: int = 0, **options: Any) -> Any:
        import torch

        torch.manual_seed(seed)
        return getattr(self.module, self.architecture.model)(**options)

    def batch(self, rows: int = ROWS, length: int = LENGTH, seed: int = 0) -> dict[str, Any]:
        return batch(self.architecture, self.module, rows, length, seed)

    def loss(self, model: Any, given: dict[str, Any]) -> Any:
        if self.architecture.needs == "lightning":
            return model.training_step(given, 0)
        said = model(**given)
        return (
            said["loss"] if isinstance(said, dict) else next(one for one in said if one.dim() == 0)
        )

    def outputs(self, model: Any, given: dict[str, Any]) -> Any:
        """Logits (rows first) in the model's own mode, without gradients."""
        import torch

        with torch.no_grad():
            if self.architecture.needs == "lightning":
                return model(given["words"], given["mask"])
            said = model(
                **{
                    key: value
                    for key, value in given.items()
                    if key != "labels" or self.architecture.root != "HybridViT"
                }
            )
        if isinstance(said, dict):
            return (
                said["logits"]
                if "logits" in said
                else torch.cat([said["questions"], said["passages"]], dim=-1)
            )
        return said if torch.is_tensor(said) else next(one for one in said if one.dim() > 0)


@contextlib.contextmanager
def doubles() -> Iterator[None]:
    """Everything in float64, also tensors that a model makes for itself."""
    import torch

    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def apart(one: Any, other: Any) -> float:
    """The largest difference as a part of the largest value; infinite where one is not finite or
    the shapes differ.
    """
    one, other = one.detach(), other.detach()
    if one.shape != other.shape or not bool(one.isfinite().all() and other.isfinite().all()):
        return float("inf")
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-12))


def _masked(case: Case, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    mask = given[case.architecture.mask].clone()
    mask[1, -5:] = 0
    mask[2, -2:] = 0
    if case.architecture.needs != "lightning":  # packed sequences are filled from the left
        mask[0, :3] = 0  # what stands behind is never seen by a causal model
    return {**given, case.architecture.mask: mask}, mask.bool()


def _kept(case: Case, out: Any, keep: Any) -> Any:
    return out[keep] if out.dim() == 3 and case.architecture.tokens != "src" else out


def padding(case: Case) -> bool:
    with doubles():
        model = case.model().eval()
        given, keep = _masked(case, case.batch())
        tokens = given[case.architecture.tokens]
        other = {**given, case.architecture.tokens: tokens.where(keep, (tokens + 7) % 80 + 3)}
        return (
            apart(
                _kept(case, case.outputs(model, other), keep),
                _kept(case, case.outputs(model, given), keep),
            )
            > 1e-6
        )


def padding_length(case: Case) -> bool:
    with doubles():
        model = case.model().eval()
        given, _ = _masked(case, case.batch())
        row = {key: value[1:2] for key, value in given.items()}
        short = {key: value[:, :-5] if value.dim() > 1 else value for key, value in row.items()}
        return apart(case.outputs(model, row), case.outputs(model, short)) > 1e-6


def boolean(case: Case) -> bool:
    model = case.model().eval()
    given, keep = _masked(case, case.batch())
    other = {**given, case.architecture.mask: keep}
    return (
        apart(
            _kept(case, case.outputs(model, other), keep),
            _kept(case, case.outputs(model, given), keep),
        )
        > 1e-5
    )


def four_d(case: Case) -> bool:
    import torch

    model = case.model().eval()
    given, keep = _masked(case, case.batch())
    allowed = keep[:, None, None, :] & torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    bias = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    other = {**given, case.architecture.mask: bias}
    return (
        apart(
            _kept(case, case.outputs(model, other), keep),
            _kept(case, case.outputs(model, given), keep),
        )
        > 1e-5
    )


def all_masked(case: Case) -> bool:
    model = case.model().eval()
    given = case.batch()
    mask = given[case.architecture.mask].clone()
    mask[1] = 0
    return not bool(case.outputs(model, {**given, case.architecture.mask: mask}).isfinite().all())


def future(case: Case) -> bool:
    model = case.model().double().eval()
    given = case.batch()
    name = "tgt" if "tgt" in given else case.architecture.tokens
    other = given[name].clone()
    other[:, 7:] = (other[:, 7:] + 5) % 80
    return (
        apart(case.outputs(model, {**given, name: other})[:, :7], case.outputs(model, given)[:, :7])
        > 1e-6
    )


def labels(case: Case) -> bool:
    model = case.model().eval()
    given, keep = _masked(case, case.batch())
    name = case.architecture.labels
    other = {**given, name: given[name].where(keep, (given[name] + 1) % 7)}
    return bool(abs(case.loss(model, other).item() - case.loss(model, given).item()) > 1e-5)


def _in_half(case: Case, kind: Any, length: int) -> float:
    import torch

    model = case.model().eval()
    for name, one in model.named_parameters():
        if (
            "q_proj" in name or "k_proj" in name
        ):  # as after some training: attention that looks somewhere
            one.data.mul_(12.0)
    given = case.batch(ROWS, length)
    full, loss = case.outputs(model, given), case.loss(model, given)
    assert bool(full.isfinite().all() and loss.isfinite())
    try:
        with torch.autocast("cpu", dtype=kind):
            return max(
                apart(case.outputs(model, given).float(), full),
                apart(case.loss(model, given).float(), loss),
            )
    except RuntimeError:
        return float("inf")


def half(case: Case) -> bool:
    import torch

    return _in_half(case, torch.float16, LENGTH) > 0.05


def bfloat(case: Case) -> bool:
    import torch

    return _in_half(case, torch.bfloat16, 512) > 0.05


def _tied(case: Case, model: Any) -> bool:
    assert case.architecture.tied is not None
    one, other = (model.get_parameter(name) for name in case.architecture.tied)
    return one is other


def tie_init(case: Case) -> bool:
    return not _tied(case, case.model())


def tie_copy(case: Case) -> bool:
    model = copy.deepcopy(case.model())
    one, other = (model.get_parameter(name) for name in case.architecture.tied or ())
    return bool(one.data_ptr() != other.data_ptr())


def tie_load(case: Case) -> bool:
    model = case.model()
    model.load_state_dict(case.model(1).state_dict())
    return not _tied(case, model)


def _train(case: Case, model: Any, steps: int, first: int = 0) -> Any:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for step in range(first, first + steps):
        torch.manual_seed(step)
        optimizer.zero_grad()
        case.loss(model, case.batch(ROWS, LENGTH, step)).backward()
        optimizer.step()
    return model


def tie_step(case: Case) -> bool:
    model = case.model()
    before = _tied(case, model)
    return before and not _tied(case, _train(case, model, 2))


def _reloaded(case: Case, trained: Any) -> Any:
    fresh = case.model(seed=5)
    fresh.load_state_dict(copy.deepcopy(trained.state_dict()))
    return fresh


def reload(case: Case) -> bool:
    model, given = case.model(), case.batch()
    return (
        apart(case.outputs(_reloaded(case, model).eval(), given), case.outputs(model.eval(), given))
        > 1e-6
    )


def trained_reload(case: Case) -> bool:
    given = case.batch()
    model = _train(case, case.model(), 3)
    return (
        apart(case.outputs(_reloaded(case, model).eval(), given), case.outputs(model.eval(), given))
        > 1e-6
    )


def trained_resume(case: Case) -> bool:
    given = case.batch()
    model = _train(case, case.model(), 3)
    again = _reloaded(case, model)
    one, other = _train(case, again, 2, 3), _train(case, model, 2, 3)
    return apart(case.outputs(one.eval(), given), case.outputs(other.eval(), given)) > 1e-6


def lazy(case: Case) -> bool:
    model = case.model()
    before = {name for name, _ in model.named_parameters()}
    case.outputs(model, case.batch())
    return {name for name, _ in model.named_parameters()} != before


def longest(case: Case) -> bool:
    model = case.model().eval()
    case.outputs(model, case.batch(1, 16))
    try:
        case.outputs(model, case.batch(1, case.architecture.longest))
    except (ValueError, IndexError, RuntimeError, AssertionError):
        return True
    return False


def sizes(case: Case) -> bool:
    model = case.model().eval()
    case.outputs(model, case.batch(4))
    try:
        return any(len(case.outputs(model, case.batch(rows))) != rows for rows in (1, 3))
    except (ValueError, IndexError, RuntimeError):
        return True


def alone(case: Case) -> bool:
    model = case.model().eval()
    given = case.batch(4)
    whole = case.outputs(model, given)
    return (
        apart(case.outputs(model, {key: value[1:2] for key, value in given.items()}), whole[1:2])
        > 1e-4
    )


def still(case: Case) -> bool:
    model, given = case.model().eval(), case.batch()
    return apart(case.outputs(model, given), case.outputs(model, given)) > 0


def gradient(case: Case) -> bool:
    model = case.model()
    loss = case.loss(model, case.batch())
    loss.backward()
    return bool(loss.isfinite()) and any(
        one.grad is not None and not bool(one.grad.isfinite().all()) for one in model.parameters()
    )


def unused(case: Case) -> bool:
    model = case.model()
    case.loss(model, case.batch()).backward()
    return any(one.grad is None for one in model.parameters())


def config(case: Case, **options: Any) -> bool:
    """Built as it is, and then no step."""
    try:
        model = case.model(**options)
    except (ValueError, AssertionError):
        return False
    try:
        case.loss(model, case.batch()).backward()
    except (RuntimeError, TypeError, AttributeError, IndexError):
        return True
    return False


def ranks(case: Case) -> bool:
    """Two processes with half of the rows each, against one with all: the gradients after DDP's
    reduction.
    """
    import torch
    from torch import multiprocessing

    model, given = case.model().eval(), case.batch(4)
    case.loss(model, given).backward()
    whole = {name: one.grad.clone() for name, one in model.named_parameters()}
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    store = torch.distributed.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    children = [
        context.Process(
            target=_rank,
            args=(case.module.__file__, case.architecture, rank, store.port, answers),
            daemon=True,
        )
        for rank in range(2)
    ]
    for child in children:
        child.start()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join(30)
    largest = max(
        float(one.abs().max()) for one in whole.values()
    )  # some gradients are nothing but rounding
    return any(
        float((torch.tensor(grads[name]) - one).abs().max()) > 1e-4 * largest
        for grads in found
        for name, one in whole.items()
    )


def _rank(path: str, architecture: Architecture, rank: int, port: int, answers: Any) -> None:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    case = Case(architecture, imported(path))
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", port, None, is_master=False)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    model = case.model().eval()

    class Loss(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", [])
            self._ddp_params_and_buffers_to_ignore = [f"model.{name}" for name in ignored]

        def forward(self, given: dict[str, Any]) -> Any:
            return case.loss(model, given)

    wrapped = DistributedDataParallel(Loss(), find_unused_parameters=True)
    wrapped(
        {key: value[2 * rank : 2 * rank + 2] for key, value in case.batch(4).items()}
    ).backward()
    answers.put({name: one.grad.tolist() for name, one in model.named_parameters()})
    torch.distributed.destroy_process_group()


PROOFS: Mapping[str, Callable[..., bool]] = {
    one.__name__: one
    for one in (
        padding,
        padding_length,
        boolean,
        four_d,
        all_masked,
        future,
        labels,
        half,
        bfloat,
        tie_init,
        tie_copy,
        tie_load,
        tie_step,
        reload,
        trained_reload,
        trained_resume,
        lazy,
        longest,
        sizes,
        alone,
        still,
        gradient,
        unused,
        config,
        ranks,
    )
}
