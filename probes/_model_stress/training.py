"""A few steps of training as in a script: optimizer, schedule, random state, checkpoints."""

from __future__ import annotations

import io
import random
import sys
from typing import Any, Dict, List, Optional, Tuple

import torch

from _model_stress.batches import Batch
from _model_stress.tested_model import TestedModel, sow

RATE = 1e-3


class TrainingRun:
    """One run of training. `seed` draws the weights; `losses` are its steps', on the host."""

    def __init__(self, tested: TestedModel, seed: int) -> None:
        self.tested, self.model = tested, tested.build(seed)
        self.losses: List[Any] = []
        self.optimizers: List[Any] = []
        self.schedules: List[Any] = []
        self.own_optimizer = False
        if tested.kind != "lightning":
            self._optimize()
        sow(seed)

    def _optimize(self) -> None:
        """AdamW with a warm-up, or what a Lightning module configures itself."""
        if self.tested.kind == "lightning":
            try:
                self.optimizers, self.schedules = _configured(self.model.configure_optimizers())
                self.own_optimizer = bool(self.optimizers)
            except Exception:  # it may ask its trainer, and there is none
                self.optimizers = []
        if not self.optimizers:
            self.optimizers = [
                torch.optim.AdamW(
                    [item for item in self.model.parameters() if item.requires_grad], lr=RATE
                )
            ]
            self.schedules = [
                torch.optim.lr_scheduler.LambdaLR(self.optimizers[0], lambda step: 1.0 / (1 + step))
            ]

    def go_on(self, batches: List[Batch]) -> None:
        """Train a step on each batch, in train()."""
        if not self.optimizers:
            self._optimize()
        self.model.train()
        for batch in batches:
            for item in self.optimizers:
                item.zero_grad()
            with torch.enable_grad():
                loss = self.tested.read(self.tested.call(self.model, batch.copied().data)).loss
                loss.backward()
            for item in self.optimizers:
                item.step()
            for schedule in self.schedules:
                if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
                    schedule.step(loss.detach())
                else:
                    schedule.step()
            self.losses.append(loss.detach().cpu().clone())

    def saved(self) -> bytes:
        """The checkpoint as torch.save writes it: model, optimizers, schedules, random state."""
        state: Dict[str, Any] = {"state_dict": self.model.state_dict()}
        if self.tested.kind == "lightning":
            self.model.on_save_checkpoint(state)
        state["trainprobe"] = {
            "optimizers": [item.state_dict() for item in self.optimizers],
            "random": torch.get_rng_state(),
        }
        state["trainprobe"]["schedules"] = [item.state_dict() for item in self.schedules]
        if torch.device(self.tested.device).type == "cuda":
            state["trainprobe"]["cuda"] = torch.cuda.get_rng_state_all()
        self._others = _other_states()
        out = io.BytesIO()
        torch.save(state, out)
        return out.getvalue()

    def loaded(self, state: Dict[str, Any], others: Any, *, strict: bool = True) -> Any:
        """Load a checkpoint; return what load_state_dict returned, raise what it raises. Lightning
        makes its optimizers after the weights are loaded, a script before.
        """
        if self.tested.kind == "lightning":
            self.model.on_load_checkpoint(state)
        reported = self.model.load_state_dict(state["state_dict"], strict=strict)
        if not self.optimizers:
            self._optimize()
        mine = state["trainprobe"]
        for item, values in zip(
            self.optimizers + self.schedules, mine["optimizers"] + mine["schedules"]
        ):
            item.load_state_dict(values)
        torch.set_rng_state(mine["random"])
        if "cuda" in mine:
            torch.cuda.set_rng_state_all(mine["cuda"])
        _set_others(others)
        return reported

    @property
    def others(self) -> Any:
        """The random states of Python and numpy at the last save, not in the checkpoint."""
        return self._others


def read(data: bytes, device: str) -> Tuple[Dict[str, Any], Optional[Exception]]:
    """A checkpoint, read with weights_only if possible, and the error if not."""
    try:
        return torch.load(io.BytesIO(data), map_location=_to(device), weights_only=True), None
    except Exception as error:  # whatever the user's hooks have put into it
        return torch.load(io.BytesIO(data), map_location=_to(device), weights_only=False), error


def _to(device: str) -> Any:
    """Random states stay on the host, wherever the tensors are."""
    return (
        None
        if device == "cpu"
        else lambda storage, where: storage if where == "cpu" else storage.cuda()
    )


def _other_states() -> Any:
    numpy: Any = sys.modules.get("numpy")
    return random.getstate(), numpy.random.get_state() if numpy is not None else None


def _set_others(states: Any) -> None:
    random.setstate(states[0])
    if states[1] is not None:
        sys.modules["numpy"].random.set_state(states[1])


def _configured(made: Any) -> Tuple[List[Any], List[Any]]:
    """The optimizers and schedules in what configure_optimizers returned."""
    if isinstance(made, torch.optim.Optimizer):
        return [made], []
    if isinstance(made, dict):
        return [made["optimizer"]], (
            [_schedule(made["lr_scheduler"])] if made.get("lr_scheduler") is not None else []
        )
    if isinstance(made, (list, tuple)) and len(made) == 2 and isinstance(made[0], (list, tuple)):
        return list(made[0]), [_schedule(item) for item in made[1]]
    optimizers: List[Any] = []
    schedules: List[Any] = []
    for item in made or ():
        more = _configured(item)
        optimizers += more[0]
        schedules += more[1]
    return optimizers, schedules


def _schedule(item: Any) -> Any:
    return item["scheduler"] if isinstance(item, dict) else item
