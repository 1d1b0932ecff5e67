"""What the code that is seen does not decide is a hint."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import program_of
from trainprobe.lint.engine import findings_of
from trainprobe.lint.model import SHOWN_FROM

DIST = "import torch, time\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
MAIN = "if dist.get_rank() == 0:\n    "
ACCELERATE = "import accelerate\nacc = accelerate.Accelerator()\n"
COND = "rank-conditional-collective"
WRAPPED = (
    DIST + "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "from torch.nn.utils import clip_grad_norm_\nmodel = FSDP(net)\n"
)
EPOCHS = (
    DIST + "from torch.utils.data import DataLoader\n"
    "from torch.utils.data.distributed import DistributedSampler\n"
    "sampler = DistributedSampler(rows)\n"
    "loader = DataLoader(rows, sampler=sampler, batch_size={})\n"
    "for epoch in range(n):\n    for row in loader: pass\n"
)
SAMPLED = (
    DIST + "from torch.utils.data import DataLoader\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "def main(rank, rows, net):\n    net = DDP(net)\n    part = {}\n"
    "    return DataLoader(part, shuffle=True)\n"
)
DDP = (
    DIST + "from torch.nn.parallel import DistributedDataParallel\n"
    "class Net(torch.nn.Module):\n    def __init__(self):\n        self.one = torch.nn.{}\n"
    "net = DistributedDataParallel(Net())\nif dist.get_rank() == 0:\n    net(x)\n"
)
SHARDED = (
    "import torch\nfrom torch.distributed.fsdp import fully_shard\nm = torch.nn.Linear(1, 1)\n"
    "fully_shard(m)\n"
)
CASES = [
    # what turns it off on the way, and is not known
    (COND, DIST + "def save(x):\n    if x.ready: dist.barrier()\n" + MAIN + "save(y)", [False]),
    (COND, DIST + "def save(args):\n    if args.log: dist.barrier()\n" + MAIN + "save(a)", [True]),
    (COND, DIST + "def save(x):\n    if x % 9 == 0: dist.barrier()\n" + MAIN + "save(y)", [True]),
    (COND, DIST + "def save(on):\n    if on: dist.barrier()\n" + MAIN + "save(flag)", [False]),
    (COND, DIST + "def save(on):\n    if on: dist.barrier()\n" + MAIN + "save(True)", [True]),
    (
        COND,
        DIST + "def save():\n    if dist.is_initialized(): dist.barrier()\n" + MAIN + "save()",
        [True],
    ),
    # the other half stands in another function
    (
        COND,
        DIST + "def load():\n    if dist.get_rank() == 0: dist.barrier()\n"
        "def main():\n    if dist.get_rank() != 0: dist.barrier()\n    load()",
        [False, False],
    ),
    # a loop that serves the main rank
    (
        COND,
        DIST + "def serve():\n    while True: dist.broadcast(x, 0)\n"
        "if dist.get_rank() != 0:\n    serve()",
        [False],
    ),
    # the norm of what a condition says is whole
    (
        "multi-rank-mismatch",
        SHARDED + "for p in m.parameters():\n    print(p.grad.norm().item())",
        [True],
    ),
    (
        "multi-rank-mismatch",
        SHARDED + "if not plan.shards_parameters:\n    for p in m.parameters():\n"
        "        print(p.grad.norm().item())",
        [],
    ),
    # ranks that leave with an error, upon which the others are ended
    (COND, DIST + "if dist.get_rank() == 0 and bad:\n    exit(1)\ndist.barrier()", [False]),
    (
        COND,
        DIST + "if dist.get_rank() == 0 and bad:\n    print('so')\n    exit(0)\ndist.barrier()",
        [False],
    ),
    # what all callers give turns it off
    (
        COND,
        DIST + "def show(x=None):\n    if dist.get_rank() != 0:\n        return\n"
        "    if x is None:\n        dist.barrier()\nshow(mine)",
        [False],
    ),
    (
        COND,
        DIST + "def show(x=None):\n    if dist.get_rank() != 0:\n        return\n"
        "    if x is None:\n        dist.barrier()\nshow()",
        [False],
    ),
    # ranks that leave early, and a condition around the call
    (COND, DIST + "def f():\n    if dist.get_rank():\n        return\n    dist.barrier()", [False]),
    (COND, DIST + "def f():\n    if dist.get_rank() == 0:\n        dist.barrier()", [True]),
    (COND, DIST + "if dist.get_rank() == 0 and bad:\n    exit()\ndist.barrier()", [False]),
    # what is caught seldom fails on one rank alone
    (
        COND,
        DIST + "m = torch.nn.parallel.DistributedDataParallel(net)\nfor x in rows:\n    try:\n"
        "        m(x).backward()\n    except Exception:\n        continue",
        [False],
    ),
    (
        COND,
        DIST + "def show(is_main, distributed):\n    if is_main and distributed:\n"
        "        dist.barrier()\nshow(dist.get_rank() == 0, many)",
        [True],
    ),
    # another rank serves them, through a function
    (
        COND,
        DIST + "def turn():\n    dist.broadcast(x, 0)\nif dist.get_rank() == 0:\n    run(turn)\n"
        "else:\n    while True:\n        turn()",
        [False],
    ),
    # commands of one program, of which one trains
    (
        "checkpoint-corrupt",
        DIST + "def train():\n    m(x).backward()\ndef freeze():\n    m.eval()\n"
        "    torch.save(m, 'a.pt')\ndef main(args):\n    if args.train:\n        train()\n"
        "    else:\n        freeze()\nmain(args)",
        [False],
    ),
    # how long work takes, the source does not tell
    (
        "rank0-long-task",
        "import os\n" + DIST + MAIN + "os.system('tar xf a')\ndist.barrier()",
        [False],
    ),
    # a model that nothing shards
    (COND, ACCELERATE + "if acc.is_main_process:\n    acc.get_state_dict(m)", [False]),
    (
        COND,
        ACCELERATE + "kind = 'fsdp'\nif acc.is_main_process:\n    acc.get_state_dict(m)",
        [False],
    ),
    (
        COND,
        ACCELERATE.replace("tor()", "tor(fsdp_plugin=accelerate.FullyShardedDataParallelPlugin())")
        + "if acc.is_main_process:\n    acc.get_state_dict(m)",
        [True],
    ),
    (
        "multi-rank-mismatch",
        WRAPPED + "if args.fsdp: pass\nelse: clip_grad_norm_(model.parameters(), 1)",
        [],
    ),
    ("multi-rank-mismatch", WRAPPED + "clip_grad_norm_(model.parameters(), 1)", [True]),
    # whether a time was taken is no question to the clock
    (
        COND,
        DIST + "t0 = time.time()\nif t0 is not None:\n    dist.barrier()",
        [],
    ),
    # what a thread of this rank has done
    (COND, DIST + "if future.done():\n    dist.barrier()", [True]),
    (COND, DIST + "if game.done:\n    dist.barrier()", []),
    (
        COND,
        DIST + "class Game:\n    def done(self): return True\ngame = Game()\n"
        "if game.done():\n    dist.barrier()",
        [],
    ),
    # ColossalAI's saving
    (
        COND,
        (
            "from colossalai.booster import Booster\nimport torch.distributed as dist\n"
            "booster = Booster()\nif dist.get_rank() == 0:\n    booster.save_model(m, 'a')"
        ),
        [True],
    ),
    # a job of one rank
    (
        "checkpoint-corrupt",
        DIST + "def save(m):\n    if dist.get_world_size() <= 1:\n        torch.save(m, 'a.pt')\n"
        "save(x)",
        [],
    ),
    (
        "checkpoint-corrupt",
        DIST + "def save(m):\n    if dist.get_world_size() > 1:\n        torch.save(m, 'a.pt')\n"
        "save(x)",
        [True],
    ),
    (
        "checkpoint-corrupt",
        DIST + "import filelock\ndef save(m):\n    with filelock.FileLock('a'):\n"
        "        torch.save(m, 'a.pt')\nsave(x)",
        [],
    ),
    ("checkpoint-corrupt", ACCELERATE + "model.save_pretrained('out')", [True]),
    # a script that converts, and one that trains what it has loaded
    (
        "checkpoint-corrupt",
        DIST + "m.load_state_dict(torch.load('a'))\ntorch.save(m.half(), 'a.pt')",
        [False],
    ),
    (
        "checkpoint-corrupt",
        DIST + "m.load_state_dict(torch.load('a'))\ndef fit(x):\n    m(x).backward()\n"
        "for x in rows:\n    fit(x)\ntorch.save(m, 'a.pt')",
        [True],
    ),
    (
        "checkpoint-corrupt",
        ACCELERATE + "model.save_pretrained('out', save_function=acc.save)",
        [],
    ),
    (
        COND,
        DIST + "def main(args):\n    if args.local_rank in [-1, 0]:\n"
        "        if args.local_rank == -1: dist.barrier()",
        [],
    ),
    (COND, DIST + "def main(args):\n    if args.local_rank in [-1, 0]: dist.barrier()", [True]),
    # the rank of a matrix
    (COND, DIST + "def main(config):\n    if config.lora.rank > 0: dist.barrier()", []),
    (COND, DIST + "def main(config):\n    if config.job.rank > 0: dist.barrier()", [True]),
    # rows that are gone over once
    ("multi-rank-mismatch", EPOCHS.format("args.batch_size"), [True]),
    ("multi-rank-mismatch", EPOCHS.format("args.eval_batch_size"), []),
    # rows that are cut by hand
    ("multi-rank-mismatch", SAMPLED.format("rows"), [False]),
    ("multi-rank-mismatch", SAMPLED.format("rows.split(9)[rank]"), []),
    # a forward pass of a model without buffers
    (COND, DDP.format("Linear(1, 1)"), []),
    (COND, DDP.format("BatchNorm1d(1)"), [True]),
    # a script that may start processes, if it is asked to
    (
        "missing-main-guard",
        (
            "import torch.multiprocessing as mp\ndef run(x):\n    if isinstance(x, list):\n"
            "        mp.spawn(work, nprocs=2)\nrun(y)"
        ),
        [],
    ),
    (
        "missing-main-guard",
        (
            "import torch.multiprocessing as mp\ndef run(world_size):\n    if world_size > 1:\n"
            "        mp.spawn(work, nprocs=2)\nrun(y)"
        ),
        [True],
    ),
]


@pytest.mark.parametrize(("cause", "text", "is_shown"), CASES)
def test_cases(cause: str, text: str, is_shown: list[bool]) -> None:
    """Whether each finding of a cause is shown by default."""
    found = findings_of(program_of(a=text), hints=True)[0]
    assert [each.confidence >= SHOWN_FROM for each in found if each.id == cause] == is_shown
