"""The witness inside a real Trainer: which columns it tells of, and that the program does not
notice.
"""

from __future__ import annotations

import pytest

from tests.probes.test_witness import Run, run

__all__ = ["run"]


TRAINS = """
import logging, warnings
warnings.simplefilter("ignore")
import torch
from datasets import Dataset
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(1, 1)
    def forward(self, label=None):
        return {"loss": self.linear(label.float().unsqueeze(1)).square().mean()}
def collate(rows):
    return {"label": torch.tensor([row["label"] + len(row["passage"]) for row in rows])}
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, place):
        return {"passage": "a", "label": 1}
for data in (Dataset.from_dict({"passage": ["a"] * 8, "label": [1] * 8}), Rows()):
    arguments = TrainingArguments("out", max_steps=1, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model=Model(), args=arguments, train_dataset=data, data_collator=collate)
    print(hasattr(Trainer, "_signature_columns"))
    try:
        trainer.train()
    except KeyError as error:
        print(type(error).__name__, error, trainer._signature_columns[:1])
"""


@pytest.mark.soak
@pytest.mark.torch
def test_columns_that_the_trainer_takes_away_are_told_with_those_it_leaves(run: Run) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    env = {"RANK": "", "WORLD_SIZE": "", "LOCAL_RANK": "", "HF_HUB_OFFLINE": "1"}
    bare, seen = run(TRAINS, witness=False, env=env), run(TRAINS, env=env)
    assert (seen.exit_code, seen.stdout) == (bare.exit_code, bare.stdout)
    assert seen.stdout.splitlines() == ["False", "KeyError 'passage' ['label']"] * 2
    by_dataset, by_sample = seen.of("columns.removed")
    assert (by_dataset["removed"], by_dataset["kept"]) == (["passage"], ["label"])
    assert by_sample["removed"] is None
    assert "label" in by_sample["kept"]
    assert "passage" not in by_sample["kept"]
    assert by_sample["of"].lower() == "training"
