"""Fan-ins are those of the operations that a model runs, and stirred weights keep what goes
through the model in its size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, math, sys
sys.path.insert(0, {probes!r})
import torch
from torch import nn
from torch.nn import functional
from _model_stress.fan_in import fan_ins
from _model_stress.tested_model import stir

class Every(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.lstm, self.attend = nn.Embedding(9, 8), nn.LSTM(8, 16, batch_first=True), nn.MultiheadAttention(16, 2, batch_first=True)
        self.flat, self.grouped, self.up = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 8, (3, 5), padding="same", groups=4), nn.ConvTranspose2d(8, 6, 4, 2, 1)
        self.line, self.solid = nn.Conv1d(6, 4, 7), nn.Conv3d(1, 2, 3)
        self.turned = nn.Parameter(torch.randn(4, 12))  # (in, out), as GPT-2 has it
        self.experts = nn.Parameter(torch.randn(3, 12, 5))
        self.masked, self.place = nn.Parameter(torch.randn(5, 5)), nn.Parameter(torch.zeros(1, 1, 5))
        self.register_buffer("seen", torch.ones(5, 5).tril())
        self.left_out = nn.Linear(7, 3)

    def forward(self, ids, picture):
        x = self.lstm(self.table(ids))[0]
        x = self.attend(x, x, x)[0]
        x = self.grouped(self.flat(x.transpose(1, 2).unsqueeze(2) + picture))
        x = self.line(self.up(x).flatten(2)).transpose(1, 2)
        x = torch.addmm(torch.zeros(12), x.reshape(-1, 4), self.turned)
        x = torch.einsum("ti,eio->eto", x, self.experts).mean(0) + self.place
        x = functional.linear(x, self.masked * self.seen)
        return x.sum() + self.solid(picture.reshape(1, 1, 4, 4, -1)).sum()

torch.manual_seed(0)
model = Every().eval()
ids, picture = torch.randint(9, (2, 8)), torch.randn(2, 16, 4, 8)
found = fan_ins(model, lambda: model(ids, picture))

class Deep(nn.Sequential):
    pass

deep = Deep(*[layer for _ in range(12) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]).eval()
image = torch.randn(1, 32, 16, 16)
stir(deep, 0, fan_ins(deep, lambda: deep(image)))
unknown = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]).eval()
stir(unknown, 0, {{}})
with torch.no_grad():
    print(json.dumps([found, float(deep(image).abs().max()), float(unknown(image).abs().max())]))
"""
FAN_INS = {
    "table.weight": 1,
    "attend.in_proj_weight": 16,
    "attend.out_proj.weight": 16,
    "flat.weight": 16 * 9,
    "grouped.weight": 2 * 15,
    "up.weight": 8 * 4,
    "line.weight": 6 * 7,
    "solid.weight": 27,
    "turned": 4,
    "experts": 12,
    "masked": 5,
    "place": 1,
}


@pytest.fixture(scope="module")
def found() -> tuple[dict[str, float], float, float]:
    pytest.importorskip("torch")
    program = PROGRAM.format(probes=str(ROOT / "probes"))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    sizes, known, unknown = json.loads(done.stdout)
    return sizes, known, unknown


@pytest.mark.parametrize("name", FAN_INS)
def test_a_fan_in_is_that_of_the_operation(
    name: str, found: tuple[dict[str, float], float, float]
) -> None:
    assert found[0][name] == pytest.approx(FAN_INS[name], rel=0.01)


def test_what_no_operation_tells_is_left_out(found: tuple[dict[str, float], float, float]) -> None:
    assert "left_out.weight" not in found[0]  # never run


def test_stirred_convolutions_do_not_grow_with_depth(
    found: tuple[dict[str, float], float, float],
) -> None:
    assert found[1] < 10
    assert found[2] < 10  # nor where only their shapes tell
