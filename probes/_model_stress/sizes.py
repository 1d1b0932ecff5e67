"""One model at many batch sizes: which work, with what results, and which take too long."""

from __future__ import annotations

import time
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.fault_location import ill_gradients, opened, own_frame, refused
from _model_stress.findings import Findings
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

GRID = ((1, 8), (1, 1), (2, 1), (3, 7), (2, 31), (5, 16), (2, 128), (1, 127), (2, 512))
LONG = 64  # a sample of more positions may need that many: shorter ones are tried, and its own
ROWS = (1, 2, 3, 5, 8)  # where nothing counts positions
OUT_OF_MEMORY = ("not enough memory", "out of memory", "can't allocate memory")
# of torch's convolutions and poolings
TOO_SHORT = (
    "kernel size can't be greater",
    "output size is too small",
    "padding size should be less than",
)
Size = Tuple[int, Optional[int]]


class Passed(NamedTuple):
    """One size. `error`: it raised, while `doing` forward or backward in the innermost `module`.
    `shapes` are the outputs', `ill` parameters have gradients and `ill_outputs` values that are not
    finite.
    """

    size: Size
    error: Optional[BaseException] = None
    doing: str = ""
    module: str = ""
    loss: float = 0.0
    shapes: Optional[Dict[str, Tuple[int, ...]]] = None
    ill: Tuple[str, ...] = ()
    ill_outputs: Tuple[str, ...] = ()

    @property
    def cause(self) -> Tuple[str, str, int]:
        """What tells failures apart: the exception's type, and the user's line or the module."""
        frame = own_frame(self.error) if self.error is not None else None
        return (
            type(self.error).__name__,
            frame.filename if frame else self.module,
            (frame.lineno or 0) if frame else 0,
        )

    @property
    def refused(self) -> bool:
        return self.error is not None and refused(self.error)

    @property
    def failure(self) -> str:
        """` in encoder.0 (ValueError: its message)`, "" where nothing was raised."""
        if self.error is None:
            return ""
        return f"{f' in {self.module}' if self.module else ''} ({summary_of(self.error)})"

    @property
    def order(self) -> Tuple[int, Size]:
        """Smaller sizes come first."""
        return order_of(self.size)


def order_of(size: Size) -> Tuple[int, Size]:
    return size[0] * (size[1] or 1), size


def written(size: Size) -> str:
    """`2x512`; only the rows where nothing counts positions."""
    return f"{size[0]}x{size[1]}" if size[1] is not None else f"{size[0]}"


def allowed_length(model: Any, declared: Optional[int]) -> Optional[int]:
    """The longest sequence that the declaration allows. A position table with a padding row has
    fewer places (RoBERTa's positions begin at padding_idx + 1).
    """
    if declared is None:
        return None
    for path, module in model.named_modules():
        if (
            isinstance(module, torch.nn.Embedding)
            and "pos" in path.rsplit(".", 1)[-1].lower()
            and module.padding_idx is not None
        ):
            return min(declared, int(module.num_embeddings - module.padding_idx - 1))
    return declared


def resizable(tested: TestedModel) -> bool:
    """Whether the length may vary: a shorter batch runs, or the sample takes any length."""
    # tokens may stand for the patches of a picture: only the sample knows what length fits
    if any(
        item.dim() >= 4 and item.is_floating_point() for item in tested.batch(2).leaves().values()
    ):
        return tested.sized and tested.traits.resizes
    return tested.traits.resizes or tested.sized


def sizes_for(tested: TestedModel, longest: Optional[int]) -> List[Size]:
    """The sizes to try, the cheapest first: within the declared length, with it and one less."""
    own = tested.own_length
    if own is None or not resizable(tested):
        return [(rows, own) for rows in ROWS]
    sizes: Set[Size] = {
        (rows, length if longest is None else min(length, longest)) for rows, length in GRID
    }
    if own > LONG:
        sizes |= {(1, own), (3, own), (2, own + 1)}
    if longest is not None:
        sizes |= {(2, longest), (1, max(1, longest - 1))}
    return sorted(sizes, key=lambda size: (weight(size), size))


def weight(size: Size) -> float:
    """The relative cost of a size: attention grows with the square of its length."""
    rows, length = size
    return rows * (length or 1) * (1 + (length or 0) / 512)


class Runs:
    """Passes of one model over sizes. What would take longer than what is left is not begun."""

    def __init__(self, tested: TestedModel, findings: Findings, model: Any) -> None:
        self.tested, self.findings, self.model = tested, findings, model
        self._per_position_s = 0.0
        self.left_out: List[Size] = []

    def batch(self, size: Size, seed: int = 5) -> Batch:
        return self.tested.batch(size[0], size[1], seed=seed, model=self.model)

    def over(self, sizes: List[Size], *, train: bool = False) -> List[Passed]:
        """Pass over `sizes`, in order."""
        found = []
        for size in sizes:
            if self._cost_s(size) > 0.4 * self.findings.left_s():
                self.left_out.append(size)
                continue
            item = self.at(size, train=train)
            if item is None:
                self.left_out.append(size)
                continue
            found.append(item)
        return found

    def _cost_s(self, size: Size) -> float:
        return self._per_position_s * weight(size)

    def at(self, size: Size, *, train: bool = False) -> Optional[Passed]:
        """Pass forward and backward once; None where the memory did not do."""
        self.findings.step(f"{'train ' if train else ''}{written(size)}")
        model, doing, began = self.model, "batch", time.perf_counter()
        model.train(train)
        model.zero_grad()
        standing = opened(model)
        with standing as now:
            try:
                batch = self.batch(size)
                doing = "forward"
                ran = self.tested.run(model, batch, seed=7, grad=True)
                doing = "backward"
                if ran.loss.requires_grad:
                    ran.loss.backward()
            except Exception as error:  # whatever the user's model raises is what was looked for
                if isinstance(error, MemoryError) or any(
                    text in str(error).lower() for text in OUT_OF_MEMORY
                ):
                    return None
                return Passed(size, error, doing, now.innermost() if doing == "forward" else "")
            finally:
                model.eval()
        self._per_position_s = max(
            0.5 * self._per_position_s, (time.perf_counter() - began) / weight(size)
        )
        outputs = {name: item for name, item in ran.outputs.items() if item.dim() > 0}
        return Passed(
            size,
            loss=float(ran.loss.detach()),
            shapes={name: tuple(item.shape) for name, item in outputs.items()},
            ill=tuple(ill_gradients(model)),
            ill_outputs=tuple(
                name for name, item in outputs.items() if bool(torch.isnan(item).any())
            ),
        )
