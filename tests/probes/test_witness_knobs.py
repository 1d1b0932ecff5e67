"""Knobs that the witness turns inside a program: on stand-ins of the libraries, which say what
they were told, and on the libraries themselves.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probes.conftest import PROBES, environment

LOADER = """
class _BaseDataLoaderIter: pass
class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, **more):
        self.told = (batch_size, num_workers, sorted(more))
"""
TRAINER = (
    "class Trainer:\n    def evaluate(self, dataset=None):\n        raise"
    " RuntimeError('evaluated')\n"
)
LIGHTNING = (
    "class Trainer:\n    def __init__(self, *, limit_val_batches=None, **more):\n        self.told"
    " = limit_val_batches\n"
)
MODULES = {
    "torch/utils/data/dataloader": LOADER,
    "transformers/trainer": TRAINER,
    "lightning/pytorch/trainer/trainer": LIGHTNING,
}
Turned = Callable[..., "tuple[list[Any], int]"]


@pytest.fixture
def turned(tmp_path: Path) -> Turned:
    """Run a program with a knob; return what it printed as JSON, and how often the knob says it
    took hold.
    """

    def run(
        source: str, knob: str, *, stand_ins: bool = True, timeout_s: float = 60
    ) -> tuple[list[Any], int]:
        folder = tmp_path / "witness"
        folder.mkdir()
        for name, text in MODULES.items() if stand_ins else ():
            path = tmp_path / "libraries" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            for package in list(path.parents)[: name.count("/")]:
                (package / "__init__.py").touch()
        script = tmp_path / "program.py"
        script.write_text(f"import json\n{source}")
        paths = f"{PROBES / '_witness'}:{tmp_path / 'libraries'}"
        env = environment(
            PYTHONPATH=paths,
            RANK="0",
            WORLD_SIZE="1",
            TRAINPROBE_WITNESS_DIR=str(folder),
            TRAINPROBE_KNOB=knob,
        )
        done = subprocess.run(
            [sys.executable, str(script)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        events = [
            json.loads(line)
            for path in folder.glob("rank0.*.jsonl")
            for line in path.read_text().splitlines()
        ]
        counts = [
            event["count"]
            for event in events
            if event["name"] == "knob.applied" and event["knob"] == knob
        ]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")], max(
            counts, default=0
        )

    return run


LOADERS = """
from torch.utils.data.dataloader import DataLoader
for loader in (DataLoader([1], 8, num_workers=2, prefetch_factor=4, persistent_workers=True, pin_memory=False), DataLoader([1], 3, None, None, None, 4), DataLoader([1])):
    print(json.dumps(loader.told))
"""


def test_without_workers_what_only_workers_know_goes_too(turned: Turned) -> None:
    told, count = turned(LOADERS, "workers=0")

    assert told == [[8, 0, ["pin_memory"]], [3, 0, []], [1, 0, []]]
    assert count == 2


def test_half_a_batch_is_never_less_than_one_row_and_never_halved_twice(turned: Turned) -> None:
    again = (
        LOADERS
        + "data = [1]\nfirst = DataLoader(data, batch_size=8)\nprint(json.dumps(DataLoader(data,"
        " batch_size=first.told[0]).told))\n"
    )
    told, count = turned(again, "batch=half")

    assert [row[0] for row in told] == [4, 1, 1, 4]
    assert count == 2  # told at 1, 2, 4 …; the third is not worth an event


def test_evaluation_is_left_out_and_its_numbers_are_zero(turned: Turned) -> None:
    body = """
from transformers.trainer import Trainer
from lightning.pytorch.trainer.trainer import Trainer as Lightning
found = Trainer().evaluate([1])
print(json.dumps([found["eval_loss"], found["eval_accuracy"], Lightning(max_steps=3, limit_val_batches=1.0).told]))
"""

    assert turned(body, "evaluation=off") == ([[0.0, 0.0, 0]], 2)


def test_children_are_spawned_where_the_program_does_not_say_how(turned: Turned) -> None:
    body = """
import multiprocessing
def work(): pass
if __name__ == "__main__":
    child = multiprocessing.Process(target=work)
    child.start()
    child.join()
    print(json.dumps([multiprocessing.get_start_method(), child.exitcode]))
    multiprocessing.set_start_method("fork", force=True)
    print(json.dumps([multiprocessing.get_start_method()]))
"""

    assert turned(body, "start=spawn") == ([["spawn", 0], ["fork"]], 1)


@pytest.mark.parametrize("knob", ["workers=0", "no-such=knob"])
def test_a_knob_with_nothing_to_take_hold_of_says_nothing(turned: Turned, knob: str) -> None:
    assert turned("print(json.dumps([1]))", knob) == ([[1]], 0)


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
def test_a_loader_of_torch_loads_by_itself(turned: Turned) -> None:
    body = """
from torch.utils.data import DataLoader, get_worker_info
class Data:
    def __len__(self): return 4
    def __getitem__(self, place): return 1 if get_worker_info() is None else 0
loader = DataLoader(Data(), batch_size=2, num_workers=2, prefetch_factor=2, persistent_workers=True, multiprocessing_context="fork", timeout=30)
print(json.dumps([int(sum(batch.sum() for batch in loader)), loader.num_workers]))
"""

    assert turned(body, "workers=0", stand_ins=False) == ([[4, 0]], 1)


@pytest.mark.soak
def test_the_trainer_of_transformers_trains_on_without_evaluation(turned: Turned) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    body = """
import torch
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, x): return {"loss": self.layer(x).sum()}
class Broken(Trainer):
    def evaluation_loop(self, *args, **kwargs): raise RuntimeError("evaluated")
rows = [{"x": torch.ones(2)}] * 8
how = TrainingArguments("out", max_steps=4, eval_strategy="steps", eval_steps=2, save_strategy="no", report_to=[], use_cpu=True, remove_unused_columns=False,
                        metric_for_best_model="accuracy", disable_tqdm=True)
trainer = Broken(model=Model(), args=how, train_dataset=rows, eval_dataset=rows)
trainer.train()
print(json.dumps([trainer.state.global_step, trainer.evaluate()["eval_loss"]]))
"""

    told, count = turned(body, "evaluation=off", stand_ins=False, timeout_s=240)
    assert told[-1] == [4, 0.0]
    assert count >= 2


@pytest.mark.soak
def test_lightning_trains_on_without_validation(turned: Turned) -> None:
    pytest.importorskip("lightning")
    body = """
import torch, lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, place): return self.layer(batch).sum()
    def validation_step(self, batch, place): raise RuntimeError("validated")
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.01)
loader = torch.utils.data.DataLoader(torch.ones(8, 2), batch_size=2)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), loader, loader)
print(json.dumps([trainer.global_step]))
"""

    told, count = turned(body, "evaluation=off", stand_ins=False, timeout_s=240)
    assert told[-1] == [4]
    assert count == 1
