"""transformers' Trainer, Lightning, accelerate and plain DDP under `trainprobe run`, with and
without the one line that says their steps: they train as they do alone, and the steps arrive.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import TOKEN, python_path

pytestmark = [pytest.mark.torch, pytest.mark.slow]

STEPS = 30
SCRIPTS = {
    "ddp": """
import os, sys, time, torch, trainprobe, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(STEPS):
    model(torch.rand(4, 8)).sum().backward()
    optimizer.step()
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
    time.sleep(0.05)
print("done", flush=True)
""",
}


@pytest.mark.parametrize("says", [True, False], ids=["says-steps", "plain"])
@pytest.mark.parametrize("framework", SCRIPTS)
def test_a_framework_trains_as_it_does_alone(
    job_folder: Path, token: str, framework: str, says: bool
) -> None:
    if framework != "ddp" and importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    script = SCRIPTS[framework].replace("SAYS", str(says)).replace("STEPS", str(STEPS))
    (job_folder / "train.py").write_text(script)
    torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
    launch = (
        [sys.executable, "train.py"]  # Lightning starts its ranks itself
        if framework == "lightning"
        else [torchrun, "--standalone", "--nproc-per-node", "2", "train.py"]
    )
    tool = [sys.executable, "-m", "trainprobe", "run", "--case", "case", "--metrics", "m.prom"]
    with (job_folder / "stderr").open("wb") as stderr:
        done = subprocess.run(
            [*tool, "--on-slow=ignore", "--", *launch],
            cwd=job_folder,
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
    said = (job_folder / "stderr").read_text()
    assert done.returncode == 0, said[-3000:]
    assert done.stdout.count("done") == 2
    assert "HUNG" not in said
    lines = (job_folder / "case" / "run.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    (over,) = [one for one in events if one["event"] == "over"]
    steps = {int(rank): int(step) for rank, step in over["steps"].items()}
    assert not re.search(r"trainprobe: ", said)
    assert (set(steps) == {0, 1} and min(steps.values()) >= STEPS - 1) if says else not steps
