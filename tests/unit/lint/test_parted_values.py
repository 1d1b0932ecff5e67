"""Ranks that part since one of them alone changed a value, was told to stop, or asked its own."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import found

DIST = "import os, math, torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\nrank = dist.get_rank()\n"
DDP = DIST + "from torch.nn.parallel import DistributedDataParallel as DDP\n"
LOOP = DIST + (
    "def train(rows):\n    stop = False\n    for row in rows:\n        dist.all_reduce(row)\n{body}"
)
COUNTS = (
    DIST + "class Trainer:\n    def __init__(self):\n        self.patience = {begins}\n"
    "    def validate(self):\n        {leaves}\n        self.patience += 1\n"
    "    def fit(self):\n        for _ in range(9):\n            dist.barrier()\n"
    "            self.validate()\n            if self.patience > 3:\n                break\n"
)
NAN = DDP + (
    "def train(m, rows, o):\n    m = DDP(m)\n    for row in rows:\n        loss = m(row).mean()\n"
    "        {between}\n        if {asked}:\n            continue\n        loss.backward()\n"
    "        o.step()\n"
)
GROUPS = DIST + "first = rank // 4 * 4\n"
RANKS = "rank-conditional-collective"
CASES = [
    # a flag that only the main rank sets
    (
        RANKS,
        LOOP.format(
            body="        if rank == 0:\n            stop = test(row)\n        if stop:\n            break\n"
        ),
        [8],
    ),
    (
        RANKS,
        LOOP.format(
            body="        if rank == 0:\n            stop = True\n        stop = told(stop)\n        if stop: break\n"
        ),
        [],
    ),
    (
        RANKS,
        LOOP.format(
            body="        if rank == 0:\n            stop = True\n        dist.broadcast(stop, 0)\n        if stop: break\n"
        ),
        [],
    ),
    (
        RANKS,
        LOOP.format(body="        if row > 3:\n            stop = True\n        if stop: break\n"),
        [],
    ),
    # a count of the main rank's own
    (RANKS, COUNTS.format(begins=0, leaves="if rank != 0: return"), [13]),
    (RANKS, COUNTS.format(begins=0, leaves="print()"), []),
    (RANKS, COUNTS.format(begins="many()", leaves="if rank != 0: return"), []),
    (
        RANKS,
        COUNTS.format(begins=0, leaves="if rank != 0: return")
        + "    def tell(self):\n        self.patience = told(dist.broadcast_object_list([self.patience]))\n",
        [],
    ),
    # a trainer that is told to stop on one rank
    (
        "stop-on-one-rank",
        "def end(trainer):\n    if trainer.is_global_zero:\n        trainer.should_stop = True\n",
        [3],
    ),
    ("stop-on-one-rank", "def end(trainer):\n    trainer.should_stop = True\n", []),
    (
        "stop-on-one-rank",
        (
            "def end(trainer):\n    if trainer.is_global_zero:\n        trainer.should_stop = True\n"
            "    trainer.should_stop = trainer.strategy.broadcast(trainer.should_stop)\n"
        ),
        [],
    ),
    # the result of a collective that nobody keeps
    ("lost-reduction", DIST + "dist.all_reduce(loss / 4)\n", [5]),
    ("lost-reduction", DIST + "dist.all_reduce(loss)\n", []),
    ("lost-reduction", DIST + "dist.all_reduce(torch.ones(1).cuda() * 2)\n", []),
    ("lost-reduction", DIST + "total = loss / 4\ndist.all_reduce(total)\n", []),
    # groups
    ("group-of-own-ranks", GROUPS + "g = dist.new_group(list(range(first, first + 4)))\n", [6]),
    ("group-of-own-ranks", GROUPS + "for k in range(2):\n    g = dist.new_group([k, first])\n", []),
    ("group-of-own-ranks", GROUPS + "g = dist.new_group([0, 1])\n", []),
    (
        "group-of-own-ranks",
        GROUPS + "g = dist.new_group([first], use_local_synchronization=True)\n",
        [],
    ),
    # GPUs
    (
        "global-rank-as-gpu",
        DDP
        + "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\nm = DDP(m, device_ids=[rank])\n",
        [7],
    ),
    ("global-rank-as-gpu", DDP + "m = DDP(m, device_ids=[rank])\n", []),
    (
        "global-rank-as-gpu",
        DDP + "local = int(os.environ['LOCAL_RANK'])\nm = DDP(m, device_ids=[local])\n",
        [],
    ),
    # a rank that leaves out its backward pass
    (
        "data-conditional-collective",
        NAN.format(between="print(loss)", asked="torch.isnan(loss)"),
        [11],
    ),
    (
        "data-conditional-collective",
        NAN.format(between="print(loss)", asked="not loss.isfinite()"),
        [11],
    ),
    (
        "data-conditional-collective",
        NAN.format(between="dist.all_reduce(loss)", asked="torch.isnan(loss)"),
        [],
    ),
    (
        "data-conditional-collective",
        NAN.format(between="loss = reduced(loss)", asked="math.isnan(loss)"),
        [],
    ),
    # blocks that all ranks must enter
    (
        RANKS,
        DIST
        + "class Meet:\n    def __enter__(self):\n        dist.barrier()\n    def __exit__(self, *a): pass\n"
        "if rank == 0:\n    with Meet():\n        pass\n",
        [10],
    ),
    (
        RANKS,
        DIST
        + "def first():\n    if rank != 0: dist.barrier()\n    yield\n    if rank == 0: dist.barrier()\n"
        "if rank == 0:\n    with first():\n        pass\n",
        [10],
    ),
    # an object that a function returns
    (
        RANKS,
        DIST + "class Ranks:\n    def barrier(self):\n        dist.barrier()\n"
        "    @classmethod\n    def one(cls) -> 'Ranks':\n        return made\n"
        "def run():\n    ranks = Ranks.one()\n    if rank == 0:\n        ranks.barrier()\n",
        [14],
    ),
]


@pytest.mark.parametrize(("name", "text", "at"), CASES)
def test_where_ranks_part(name: str, text: str, at: list[int]) -> None:
    lines = [one.line for one in found(train=text) if name in (one.rule, one.id)]

    assert lines == at
