"""Files, folders and loggers that every rank makes, deletes, writes or opens."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import found, program_of
from trainprobe.lint.engine import findings_of

ID = "files-by-all-ranks"
HEAD = "import os, shutil\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
ASKS = "rank = dist.get_rank()\n"


def lines_of(**texts: str) -> list[int]:
    found = findings_of(program_of(**texts), hints=True)[0]
    return [one.line for one in found if one.rule == ID]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("if not os.path.exists('out'):\n    os.makedirs('out')", [5]),
        ("if not os.path.exists('out'):\n    os.makedirs('out', exist_ok=True)", []),
        ("os.makedirs('out')", []),
        ("shutil.rmtree('out/old')", [4]),
        ("shutil.rmtree('out/old', ignore_errors=True)", []),
        ("try:\n    os.remove('out/last.pt')\nexcept FileNotFoundError:\n    pass", []),
        ("with open('out/config.yaml', 'w') as f:\n    f.write(text)", [4]),
        ("with open('out/config.yaml') as f:\n    text = f.read()", []),
        (f"{ASKS}with open(f'out/log_{{rank}}.txt', 'w') as f:\n    f.write(text)", []),
        (f"{ASKS}if rank == 0:\n    shutil.rmtree('out/old')", []),
        (
            "from torch.utils.tensorboard import SummaryWriter\nwriter = SummaryWriter('out')",
            [5],
        ),
        ("import wandb\nwandb.init(project='x')", [5]),
        ("import wandb\nwandb.init(project='x', group='y')", []),
    ],
)
def test_what_all_ranks_come_to(source: str, lines: list[int]) -> None:
    assert lines_of(train=HEAD + source) == lines


def test_a_function_that_asks_for_the_rank_is_run_by_all_of_them() -> None:
    source = (
        "import os\nimport torch.distributed as dist\ndef end(self, folder):\n"
        "    if dist.get_rank() == 0:\n        print('saved')\n"
        "    os.remove(folder + '/latest.pth')\n"
    )
    given = source.replace("folder + '/latest.pth'", "self.output_dir + '/latest.pth'")

    assert lines_of(trainer=given) == [6]
    assert lines_of(trainer=given.replace("    if dist.get_rank() == 0:\n    ", "")) == []


def test_a_save_names_the_calls_that_every_rank_makes() -> None:
    text = """\
        import torch
        import torch.distributed as dist
        dist.init_process_group("nccl")
        def save(model):
            torch.save(model.state_dict(), "last.pt")
        def train(model):
            save(model)
            if dist.get_rank() == 0:
                save(model)
        train(torch.nn.Linear(1, 1))
    """
    (saved,) = (one for one in found(train=text) if one.rule == "save-by-all-ranks")

    assert (saved.line, saved.says) == (
        5,
        'Every rank saves to "last.pt" (called by every rank in line 7).',
    )
