"""transformers' Trainer, Lightning, accelerate and plain DDP under `trainprobe run`, with and
without the one line that says their steps: they train as they do alone, the steps arrive, and a hang
is found.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TOKEN, python_path
from trainprobe.cli.exit_codes import ENDED

pytestmark = [pytest.mark.torch, pytest.mark.slow]

STEPS = 30
# A rank that waits for a file, from the n-th call on.
SHARD = """
import os, time
calls = 0
def wait_for_the_shard(n):
    global calls
    calls += 1
    rank = os.environ.get("RANK", os.environ.get("LOCAL_RANK"))
    while HANGS and calls > n and rank == "1" and not os.path.exists("shard.ready"):
        time.sleep(0.05)
"""
SCRIPTS = {
    "ddp": """
import os, sys, time, torch, trainprobe, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(STEPS):
    model(torch.rand(4, 8)).sum().backward()
    optimizer.step()
    wait_for_the_shard(12)
    time.sleep(0.05)
    if SAYS:
        trainprobe.step(number)
print("done", flush=True)
dist.destroy_process_group()
""",
    "transformers": """
import time, torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Rows(Dataset):
    def __len__(self): return 10_000
    def __getitem__(self, place):
        time.sleep(0.01)
        wait_for_the_shard(50)
        return {"input_ids": torch.randint(0, 99, (8,)), "labels": torch.tensor(place % 2)}
config = BertConfig(vocab_size=99, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
arguments = TrainingArguments("out", max_steps=STEPS, per_device_train_batch_size=4, report_to=[], use_cpu=True,
    save_steps=10, eval_strategy="steps", eval_steps=15, disable_tqdm=True, logging_steps=10)
few = torch.utils.data.Subset(Rows(), range(8))
callbacks = []
if SAYS:
    from trainprobe.callbacks.transformers import TrainprobeCallback
    callbacks = [TrainprobeCallback()]
Trainer(BertForSequenceClassification(config), arguments, train_dataset=Rows(), eval_dataset=few, callbacks=callbacks).train()
print("done", flush=True)
""",
    "lightning": """
import time, torch, lightning.pytorch as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def training_step(self, batch, place):
        time.sleep(0.05)
        wait_for_the_shard(12)
        return self.layer(batch[0]).sum()
    def validation_step(self, batch, place):
        self.layer(batch[0])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
rows = torch.utils.data.TensorDataset(torch.rand(10_000, 8))
callbacks = []
if SAYS:
    from trainprobe.callbacks.lightning import TrainprobeCallback
    callbacks = [TrainprobeCallback()]
trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", devices=2, strategy="ddp", logger=False,
    callbacks=callbacks, val_check_interval=10, limit_val_batches=2, enable_progress_bar=False, enable_checkpointing=True)
trainer.fit(Model(), torch.utils.data.DataLoader(rows, 4), torch.utils.data.DataLoader(rows, 4))
print("done", flush=True)
""",
    "accelerate": """
import time, torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
if SAYS:
    from trainprobe.callbacks.accelerate import say_steps
    say_steps(accelerator)
for number in range(STEPS):
    optimizer.zero_grad()
    accelerator.backward(model(torch.rand(4, 8)).sum())
    optimizer.step()
    wait_for_the_shard(12)
    time.sleep(0.05)
print("done", flush=True)
""",
}


def run_watched(
    folder: Path, token: str, framework: str, *options: str, says: bool, hangs: bool
) -> tuple[subprocess.CompletedProcess[str], str, list[dict[str, Any]]]:
    """The framework's job under `trainprobe run`: how it ended, its stderr, and the journal."""
    if framework != "ddp" and importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    script = SHARD + SCRIPTS[framework]
    for name, value in (("SAYS", says), ("STEPS", STEPS), ("HANGS", hangs)):
        script = script.replace(name, str(value))
    (folder / "train.py").write_text(script)
    torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
    launch = (
        [sys.executable, "train.py"]  # Lightning starts its ranks itself
        if framework == "lightning"
        else [torchrun, "--standalone", "--nproc-per-node", "2", "train.py"]
    )
    tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--metrics", "m.prom"]
    with (folder / "stderr").open("wb") as stderr:
        done = subprocess.run(
            [*tool, "--on-slow=ignore", *options, "--", *launch],
            cwd=folder,
            env={
                **os.environ,
                **python_path(),
                TOKEN: token,
                "OMP_NUM_THREADS": "1",
                "HF_HUB_OFFLINE": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=400,
            check=False,
        )
    lines = (folder / "case" / "run.jsonl").read_text().splitlines()
    return done, (folder / "stderr").read_text(), [json.loads(line) for line in lines]


@pytest.mark.parametrize("says", [True, False], ids=["says-steps", "plain"])
@pytest.mark.parametrize("framework", SCRIPTS)
def test_a_framework_trains_as_it_does_alone(
    job_folder: Path, token: str, framework: str, says: bool
) -> None:
    done, said, events = run_watched(job_folder, token, framework, says=says, hangs=False)
    assert done.returncode == 0, said[-3000:]
    assert done.stdout.count("done") == 2
    assert "HUNG" not in said
    (over,) = [one for one in events if one["event"] == "over"]
    steps = {int(rank): int(step) for rank, step in over["steps"].items()}
    assert not re.search(r"trainprobe: ", said)
    assert (set(steps) == {0, 1} and min(steps.values()) >= STEPS - 1) if says else not steps


@pytest.mark.soak
@pytest.mark.parametrize("says", [True, False], ids=["says-steps", "plain"])
@pytest.mark.parametrize("framework", SCRIPTS)
def test_a_framework_that_hangs_is_reported(
    job_folder: Path, token: str, framework: str, says: bool
) -> None:
    done, said, events = run_watched(
        job_folder, token, framework, "--on-hang=kill", says=says, hangs=True
    )
    assert done.returncode == ENDED, said[-3000:]
    assert "wait_for_the_shard" in said
    assert "Rank 1" in said
    assert [one for one in events if one["event"] == "ending"]
