"""Comments, docstrings and printed texts hide no finding; the same word in code does."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import asked, found, lines_of

DDP = (
    "import torch.distributed as dist\nfrom torch.utils.data import DataLoader\nfrom"
    " torch.nn.parallel import DistributedDataParallel as DDP\ndist.init_process_group('gloo')\nm ="
    " DDP(net)\n"
)
NCCL = (
    "import torch\nimport torch.distributed as dist\ndist.init_process_group('nccl')\nm ="
    " net.cuda()\n"
)
SAMPLED = (
    "import torch.distributed as dist\nfrom torch.utils.data import DataLoader\nfrom"
    " torch.utils.data.distributed import DistributedSampler\ns = DistributedSampler(data)\nfor"
    " epoch in range(n):\n    for x in DataLoader(data, sampler=s):\n        pass\n"
)
PLAIN = (
    "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\nfrom transformers import Trainer,"
    " TrainingArguments\nt = Trainer(model, TrainingArguments('x'))\nt.train()\n"
)
LATE = "import os\nimport numpy\nos.environ['OMP_NUM_THREADS'] = '1'\n"
CLIP = (
    "from torch.distributed.fsdp import FullyShardedDataParallel as F\nfrom torch.nn.utils import"
    " clip_grad_norm_\nm = F(net)\nclip_grad_norm_(m.parameters(), 1.0)\n"
)
SHARD = DDP + "x = x[dist.get_rank()::dist.get_world_size()]\n"
CASES = [
    ("wrong-device-binding", NCCL, "set_device", "torch.cuda.set_device(r)"),
    (
        "wrong-device-binding",
        NCCL,
        "accelerate and lightning and deepspeed do it",
        "import accelerate\na = accelerate.Accelerator()",
    ),
    (
        "wrong-device-binding",
        NCCL,
        "CUDA_VISIBLE_DEVICES",
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = r",
    ),
    ("multi-rank-mismatch", SAMPLED, "set_epoch is not needed with accelerate", "s.set_epoch(1)"),
    (
        "multi-rank-mismatch",
        DDP + "DataLoader(d, shuffle=True)\n",
        "no DistributedSampler, no .shard( and no accelerate",
        "d = d.shard(2, r)",
    ),
    (
        "accidental-data-parallel",
        PLAIN,
        "TODO: start it by torchrun, LOCAL_RANK",
        "r = os.environ['LOCAL_RANK']",
    ),
    (
        "cpu-oversubscribed",
        LATE,
        "for the subprocess, multiprocessing, Popen",
        "import subprocess\nsubprocess.run(['x'])",
    ),
    (
        "multi-rank-mismatch",
        CLIP,
        "NO_SHARD",
        "from torch.distributed.fsdp import ShardingStrategy\nk = ShardingStrategy.NO_SHARD",
    ),
    (
        "uneven-inputs",
        SHARD,
        "padded, drop_last, total_size, Join(, x.join()",
        "k = dict(drop_last=True)",
    ),
]


@pytest.mark.parametrize(("cause", "source", "words", "code"), CASES)
def test_only_code_hides_a_finding(cause: str, source: str, words: str, code: str) -> None:
    assert lines_of(cause, train=source)
    assert lines_of(cause, train=f"{source}# {words}\n")
    assert lines_of(cause, train=f'{source}\ndef note():\n    """{words}"""\n')
    assert lines_of(cause, train=f'{source}print("we want: {words}")\n')
    assert lines_of(cause, train=f"{code}\n{source}") == []


def test_an_import_that_nothing_uses_hides_no_finding() -> None:
    source = DDP + "from torch.utils.data import DistributedSampler\nDataLoader(d, shuffle=True)\n"
    assert lines_of("multi-rank-mismatch", train=source)


def test_a_whole_command_line_says_how_a_script_is_started() -> None:
    assert (
        lines_of(
            "accidental-data-parallel",
            train=f'"""Usage:\n\n    torchrun --nproc-per-node 2 train.py\n"""\n{PLAIN}',
        )
        == []
    )


def test_a_timeout_of_another_script_is_not_this_ones() -> None:
    long = (
        "import torch.distributed as dist\nfrom datasets import"
        " load_dataset\ndist.init_process_group('nccl')\nif dist.get_rank() == 0:\n   "
        " load_dataset('x').map(f, num_proc=4)\ndist.barrier()\n"
    )
    other = "import torch.distributed as dist\ndist.init_process_group('nccl', timeout=hours)\n"
    assert [one.id for one in asked(train=long, other=other)] == ["rank0-long-task"]
    assert asked(train=long.replace("'nccl'", "'nccl', timeout=hours")) == []


def test_a_text_that_looks_like_a_waiver_waives_nothing() -> None:
    source = (
        "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier(); print('#"
        " trainprobe: ignore')\n"
    )
    assert [one.line for one in found(train=source)] == [3]
    assert (
        found(train=source.replace("print('", "print(' ')  ").replace("ignore')", "ignore")) == []
    )


@pytest.mark.parametrize(
    ("cause", "source"),
    [
        ("wrong-device-binding", NCCL),
        ("multi-rank-mismatch", SAMPLED),
        ("multi-rank-mismatch", DDP + "DataLoader(d, shuffle=True)\n"),
    ],
)
def test_a_framework_counts_where_it_runs_the_job(cause: str, source: str) -> None:
    beside = "from accelerate import {}\nx = {}()\n"

    assert lines_of(cause, train="import lib\n" + source, lib=beside.format(*["infer_map"] * 2))
    assert not lines_of(
        cause, train="import lib\n" + source, lib=beside.format(*["Accelerator"] * 2)
    )
