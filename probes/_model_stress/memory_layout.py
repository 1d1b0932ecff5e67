"""Equal values in another memory layout must give equal outputs: code that counts bytes by itself
(as_strided, data_ptr) reads other elements there, without an error.
"""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.fault_location import own_fault, recorded
from _model_stress.findings import Findings
from _model_stress.sizes import Size, written
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of


def layouts(tested: TestedModel, findings: Findings, went: List[Size]) -> str:
    """Compare outputs for a batch that lies in memory as it comes and for one that does not."""
    if tested.traits.noisy or not went:
        return ""
    size = min(went, key=lambda item: (item[0] < 2, item[0] * (item[1] or 1)))
    model = tested.comparing(tested.request.seed)
    batch = tested.batch(size[0], size[1], seed=23, model=model)
    with recorded(model) as usual:
        before = tested.run(model, batch, seed=3)
    compared = 0
    for name, other in _laid_out(batch):
        try:
            with recorded(model) as calls:
                after = tested.run(model, other, seed=3)
        except Exception as error:  # to refuse is right: nothing is computed from wrong elements
            findings.note(
                f"The model refuses a batch that is {name} in memory: {summary_of(error)}"
            )
            continue
        compared += 1
        worst = after.gap(before)
        fault = own_fault(calls, usual, lambda mine, _: mine, tested.tolerance)
        where = (fault[0] if fault else "") or type(model).__name__
        sentence = (
            f"A batch of {written(size)} that is {name} in memory gives other outputs than an equal"
            f" one that is contiguous, by {worst:.2g} of the largest: {where} reads memory by"
            " strides that are not the tensor's."
        )
        if not findings.differs(
            "shape.strides",
            worst,
            sentence,
            tolerance=100 * tested.tolerance,
            what="module",
            where=where,
        ):
            break
    return "equal in other memory layouts" if compared else ""


def _laid_out(batch: Batch) -> List[Tuple[str, Batch]]:
    """The batch in layouts that loaders and slices give: its last two axes transposed, and every
    second element of a larger tensor.
    """

    def transposed(_: str, tensor: Any) -> Any:
        if tensor.dim() < 2:
            return tensor
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)

    def sliced(_: str, tensor: Any) -> Any:
        if tensor.dim() < 1:
            return tensor
        return torch.stack([tensor, tensor.flip(-1)], -1).select(-1, 0)

    return [("transposed", batch.changed(transposed)), ("a slice", batch.changed(sliced))]
