"""The rung that stresses the model, run as its user does: what it says of a sound model, and
what user objects may do to it.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

from tests.probes.conftest import RunProbe

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="torch is not installed here"
    ),
]
MODELS = """
import os, sys, threading, time
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, does="", width=8):
        super().__init__()
        self.does, self.tokens, self.inner, self.head = does, nn.Embedding(32, width), Inner(does, width), nn.Linear(width, 32)

    def forward(self, input_ids):
        if self.does == "raise":
            raise RuntimeError("no such shape")
        if self.does == "nothing":
            return None
        if self.does == "words":
            return "logits"
        while self.does == "hang":
            time.sleep(0.1)
        if self.does == "die":
            os.kill(os.getpid(), 11)
        if self.does == "die_in_training" and self.training:
            os.kill(os.getpid(), 9)
        return self.head(self.inner(self.tokens(input_ids)))

class Inner(nn.Module):
    def __init__(self, does, width):
        super().__init__()
        self.does, self.last = does, nn.Linear(width, width)

    def forward(self, x):
        if self.does == "noise":
            x = nn.functional.dropout(x, 0.3)
        return self.last(x)

def net(width=8):
    return Net(width=width)

def does(what):
    return lambda: Net(what)

raises, nothing, words, hangs, dies, noise, dies_in_training = (
    does(what) for what in ("raise", "nothing", "words", "hang", "die", "noise", "die_in_training"))

def build_raises():
    return {}["layers"]

class WordlessError(Exception):
    def __str__(self):
        raise ValueError("no words")

def wordless():
    raise WordlessError

def number():
    return 7

def leaves():
    sys.exit(3)

def ends():
    os._exit(0)

def forks():
    os.fork()
    return Net()

def prints():
    for _ in range(2000):
        print("x" * 1000)
    return Net()

def needs(path):
    return Net()

instance = Net()
cannot_be_copied = Net()
cannot_be_copied.lock = threading.Lock()

class Huge(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device("meta"):
            self.layer = nn.Linear(1 << 22, 1 << 20)

    def to(self, *args, **kwargs):
        return self

def sample(rows, length):
    return {"input_ids": torch.randint(32, (rows, length))}

def turned(seq_len, batch_size):
    return {"input_ids": torch.randint(32, (batch_size, seq_len))}

def seeded(seed=0, device="cpu"):
    return torch.randint(32, (3, 10))

def loader():
    return torch.utils.data.DataLoader([torch.arange(10) % 32] * 6, batch_size=3)

def bad_sample():
    raise KeyError("tokens")

def empty():
    return {"text": "words"}

static = {"input_ids": torch.arange(20).reshape(2, 10), "more": (1, "two")}
"""
THREADED = (
    "import threading, time\nthreading.Thread(target=time.sleep, args=(600,),"
    " daemon=True).start()\nfrom models import *\n"
)
PARSED = "import argparse\nargparse.ArgumentParser().parse_args()\nfrom models import *\n"
ENDINGS = {
    "raises": ("no", "The model does not run forward: RuntimeError: no such shape"),
    "nothing": ("cannot", "The model returns NoneType without a floating-point tensor"),
    "words": ("cannot", "The model returns str without a floating-point tensor"),
    "dies": ("no", "The model does not run forward: it dies of SIGSEGV"),
    "build_raises": ("no", "The model cannot be built: KeyError: 'layers'"),
    "wordless": (
        "no",
        "The model cannot be built: WordlessError: (its message cannot be read: ValueError)",
    ),
    "number": ("cannot", "gives int, which is no torch.nn.Module"),
    "leaves": ("no", "The model cannot be built: SystemExit: 3"),
    "ends": ("no", "The model cannot be built: it ends its process with exit code 0"),
    "needs": ("cannot", "it needs path"),
    "cannot_be_copied": ("cannot", "The module cannot be copied"),
    "Huge": ("cannot", "name a smaller configuration"),
    "absent": ("cannot", "has no absent"),
}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "models.py").write_text(MODELS)
    (folder / "threaded.py").write_text(THREADED)
    (folder / "parsed.py").write_text(PARSED)
    (folder / "ends.py").write_text("import os\nos._exit(0)\n")
    (folder / "hangs.py").write_text("import time\ntime.sleep(600)\n")
    return folder


def test_suites_of_a_sound_model_pass_each_with_a_line(run_probe: RunProbe, job: Path) -> None:
    run = run_probe(
        "model_stress",
        "--model",
        "models.py:net",
        "--sample",
        "models.py:sample",
        "--suites",
        "fuzz,throughput",
        "--bench-steps",
        "5",
        cwd=job,
    )
    assert run.answer == "yes", run.output
    assert run.events[-1]["says"].startswith("2/2 suites passed")
    lines = {
        one["check"]: one["says"]
        for one in run.events
        if one["event"] == "note" and str(one.get("check", "")).startswith("stress.")
    }
    assert "configurations of width with seed 0" in lines["stress.fuzz"]
    assert " tokens/s (" in lines["stress.throughput"]
    rates = run.of("measure", name="throughput.rate", rows=4, length=64)
    assert rates[0]["low"] <= rates[0]["value"] <= rates[0]["high"]
    assert run.of("measure", name="throughput.rate", rows=8, length=32)
    assert run.of("measure", name="throughput.rate", rows=4, length=63)
    assert run.of("fail") == []


@pytest.mark.soak  # the suite on narrow types tells of noise in the default run
def test_noise_is_named_at_the_module_that_makes_it(run_probe: RunProbe, job: Path) -> None:
    """Its child differs too, and first, but it was given other inputs."""
    run = run_probe(
        "model_stress",
        "--model",
        "models.py:noise",
        "--sample",
        "models.py:sample",
        "--suites",
        "throughput",
        "--bench-steps",
        "1",
        cwd=job,
    )
    (fault,) = run.of("fail")
    assert (fault["property"], fault["what"], fault["where"]) == (
        "evaluation.difference",
        "module",
        "inner",
    )
    assert run.answer == "no"


def test_a_model_that_hangs_is_told_with_its_line(run_probe: RunProbe, job: Path) -> None:
    began = time.monotonic()
    run = run_probe(
        "model_stress",
        "--model",
        "models.py:hangs",
        "--sample",
        "models.py:sample",
        "--timeout-s",
        "25",
        cwd=job,
    )
    assert time.monotonic() - began < 40
    assert run.answer == "no", run.output
    assert "does not run forward: it does not end within" in run.events[-1]["says"]
    assert "models.py:" in run.events[-1]["says"]
    assert run.of("fail", given="model", kind="stood")


@pytest.mark.soak
@pytest.mark.parametrize("name", ENDINGS)
def test_what_cannot_be_stressed_is_a_sentence(name: str, run_probe: RunProbe, job: Path) -> None:
    run = run_probe(
        "model_stress",
        "--model",
        f"models.py:{name}",
        "--sample",
        "models.py:sample",
        "--suites",
        "throughput",
        cwd=job,
    )
    answer, says = ENDINGS[name]
    assert (run.answer, says in run.events[-1]["says"]) == (answer, True), run.output
    assert "Traceback" not in run.output


@pytest.mark.soak
def test_a_suite_that_dies_is_no_pass(run_probe: RunProbe, job: Path) -> None:
    run = run_probe(
        "model_stress",
        "--model",
        "models.py:dies_in_training",
        "--sample",
        "models.py:sample",
        "--suites",
        "precision,throughput",
        cwd=job,
    )
    assert run.answer == "cannot", run.output
    assert "1/2 suites passed" in run.events[-1]["says"]
    assert "dies of SIGKILL" in run.events[-1]["says"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "model",
    [
        "models.py:forks",
        "models.py:prints",
        "models.py:instance",
        "threaded.py:net",
        "parsed.py:net",
    ],
)
def test_what_is_odd_but_sound_passes(model: str, run_probe: RunProbe, job: Path) -> None:
    run = run_probe(
        "model_stress",
        "--model",
        model,
        "--sample",
        "models.py:sample",
        "--suites",
        "throughput",
        "--bench-steps",
        "2",
        cwd=job,
    )
    assert run.answer == "yes", run.output
    assert "xxxx" not in run.output
    assert ("Each suite imports again" in run.output) == model.startswith("threaded")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sample", "answer", "says"),
    [
        ("turned", "yes", "at 4x64"),
        ("seeded", "yes", "tokens/s"),
        ("loader", "yes", "tokens/s"),
        ("static", "yes", "tokens/s"),
        ("bad_sample", "no", "The sample cannot be made: KeyError: 'tokens'"),
        ("empty", "cannot", "gives dict without a tensor in it"),
    ],
)
def test_samples_of_all_kinds(
    sample: str, answer: str, says: str, run_probe: RunProbe, job: Path
) -> None:
    run = run_probe(
        "model_stress",
        "--model",
        "models.py:net",
        "--sample",
        f"models.py:{sample}",
        "--suites",
        "throughput",
        "--bench-steps",
        "2",
        cwd=job,
    )
    assert (run.answer, says in run.output) == (answer, True), run.output


@pytest.mark.soak
def test_a_module_that_ends_or_hangs_as_it_is_imported(run_probe: RunProbe, job: Path) -> None:
    ended = run_probe("model_stress", "--model", "ends.py:net", cwd=job)
    assert (ended.answer, ended.events[-1]["says"]) == (
        "no",
        "Importing the model's module fails: it ends its process with exit code 0.",
    )
    stood = run_probe("model_stress", "--model", "hangs.py:net", "--timeout-s", "20", cwd=job)
    assert stood.answer == "no"
    assert "hangs.py:2" in stood.events[-1]["says"]


@pytest.mark.soak
def test_a_lightning_module_needs_no_trainer(run_probe: RunProbe, job: Path) -> None:
    pytest.importorskip("lightning")
    (job / "lit.py").write_text(
        "import lightning, torch\nclass Lit(lightning.LightningModule):\n    def __init__(self,"
        " manual=False):\n        super().__init__()\n        self.layer = torch.nn.Linear(6, 2)\n "
        "       self.automatic_optimization, self.manual = not manual, manual\n    def"
        " training_step(self, batch, batch_idx):\n        x, y = batch\n        loss ="
        " torch.nn.functional.cross_entropy(self.layer(x), y)\n        self.log('loss', loss)\n    "
        "    if self.manual:\n            self.optimizers().step()\n        return loss\n    def"
        " configure_optimizers(self):\n        return torch.optim.SGD(self.parameters(),"
        " lr=0.1)\ndef manual():\n    return Lit(manual=True)\ndef sample():\n    return"
        " torch.randn(4, 6), torch.tensor([0, 1, 1, 0])\n"
    )
    run = run_probe(
        "model_stress",
        "--model",
        "lit.py:Lit",
        "--sample",
        "lit.py:sample",
        "--suites",
        "precision,throughput",
        "--bench-steps",
        "2",
        cwd=job,
    )
    assert run.answer == "yes", run.output
    run = run_probe(
        "model_stress",
        "--model",
        "lit.py:manual",
        "--sample",
        "lit.py:sample",
        "--suites",
        "throughput",
        cwd=job,
    )
    assert (run.answer, "needs its trainer" in run.events[-1]["says"]) == ("cannot", True), (
        run.output
    )


@pytest.mark.soak
def test_a_folder_of_transformers(run_probe: RunProbe, job: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=1, n_head=2, n_positions=64)
    transformers.GPT2LMHeadModel(config).save_pretrained(job / "whole")
    config.architectures = ["GPT2LMHeadModel"]
    config.save_pretrained(job / "bare")
    for folder in ("whole", "bare"):
        run = run_probe(
            "model_stress",
            "--model",
            str(job / folder),
            "--suites",
            "throughput",
            "--bench-steps",
            "2",
            cwd=job,
        )
        assert run.answer == "yes", run.output
    (job / "bare" / "config.json").write_text('{"model_type": "no such"}')
    run = run_probe("model_stress", "--model", str(job / "bare"), cwd=job)
    assert (run.answer, "cannot be read by transformers" in run.events[-1]["says"]) == (
        "cannot",
        True,
    )
