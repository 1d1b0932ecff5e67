"""Other ways to save a model, safetensors and transformers' folder: a change is a fault, a refusal
is not.
"""

from __future__ import annotations

import importlib
import math
import os
import tempfile
from typing import Any

from _model_stress.batches import Batch
from _model_stress.findings import Findings, gap
from _model_stress.module_state import ATTRIBUTE, differing, sharing, snapshot
from _model_stress.tested_model import TestedModel
from _shared.child_program import summary_of

# of the largest output, float32: another attention kernel may be chosen as the folder is read
FOLDER_TOLERANCE = 1e-4


def compared(tested: TestedModel, findings: Findings, model: Any, batch: Batch) -> None:
    """Save the trained `model` in each format and compare what is loaded from it."""
    with tempfile.TemporaryDirectory(prefix="saved-", dir=findings.folder) as folder:
        _safetensors(tested, findings, model, folder)
        if tested.kind == "transformers":
            _pretrained(tested, findings, model, batch, folder)


def _safetensors(tested: TestedModel, findings: Findings, model: Any, folder: str) -> None:
    findings.step("safetensors")
    try:
        format_ = importlib.import_module("safetensors.torch")
    except ImportError:
        findings.note("safetensors is not installed here, and was not tried.")
        return
    path = os.path.join(folder, "model.safetensors")
    state = model.state_dict()
    try:
        format_.save_file(state, path)
    except Exception as error:  # a format may refuse for any reason: a note
        advice = (
            "save_model and load_model save shared tensors once"
            if sharing(model)
            else "make its tensors contiguous, or use save_model"
        )
        findings.note(
            "safetensors' save_file refuses the state dict"
            f" ({str(error).strip().splitlines()[0][:160]}): {advice}."
        )
    try:
        format_.save_model(model, path)
    except Exception as error:  # the same
        findings.note(
            "safetensors' save_model refuses the model"
            f" ({str(error).strip().splitlines()[0][:160]}): use torch.save."
        )
        return
    fresh = tested.build(tested.request.seed + 2)
    if sharing(fresh) != sharing(model):
        return  # what is shared is another matter, and told by another suite
    try:
        format_.load_model(fresh, path, device=tested.device)
    except Exception as error:  # the user's own loading runs in it
        sentence = (
            "A model saved with safetensors' save_model does not load into a fresh one:"
            f" {str(error)[:300]}"
        )
        findings.raised("state.safetensors", error, sentence, what="module", where="")
        return
    mine, theirs = snapshot(model), snapshot(fresh)
    for name in [
        name for name in differing(mine, theirs) if mine[name].kind != ATTRIBUTE and name in state
    ][:4]:
        value = gap(theirs[name].leaves[""], mine[name].leaves[""]) if name in theirs else math.inf
        sentence = f"{name} changes when safetensors saves and loads the model."
        findings.differs(
            "state.safetensors", max(value, 1e-12), sentence, what=mine[name].kind, where=name
        )


def _pretrained(
    tested: TestedModel, findings: Findings, model: Any, batch: Batch, folder: str
) -> None:
    findings.step("save_pretrained")
    transformers = importlib.import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = os.path.join(folder, "pretrained")
    try:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder, local_files_only=True).to(tested.device).eval()
    except Exception as error:  # the library and the user's class both run in it
        findings.note(
            f"save_pretrained and from_pretrained do not go through: {summary_of(error)}", warn=True
        )
        return
    item, other = tested.run(model.eval(), batch, seed=9), tested.run(again, batch, seed=9)
    worst = other.gap(item)
    mine, theirs = snapshot(model), snapshot(again)
    lost = [name for name in differing(mine, theirs) if mine[name].kind != ATTRIBUTE]
    sentence = (
        f"After save_pretrained and from_pretrained the outputs differ by {worst:.2g} of the"
        " largest value" + (f"; {lost[0]} has changed." if lost else ".")
    )
    kind = mine[lost[0]].kind if lost else "module"
    findings.differs(
        "state.differs",
        worst,
        sentence,
        tolerance=FOLDER_TOLERANCE,
        what=kind,
        where=lost[0] if lost else "",
    )
