"""Faults as people write them: where rules speak, and where they must not."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import lines_of, program_of
from trainprobe.lint.engine import findings_of

DIST = "import time, torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
WRAPPED = (
    "import torch\nimport torch.distributed as dist\n"
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "torch.cuda.set_device(1)\ndist.init_process_group('nccl')\n"
)
BUFFERED = "import torchvision; m = DDP(torchvision.models.resnet18())\n"
RANKS = "rank-conditional-collective"
TRAINED = (
    "import os\nfrom transformers import Trainer\nrank = int(os.environ['RANK'])\n"
    "def make(model):\n    return Trainer(model, fsdp='full_shard')\n"
    "trainer = {made}\ntrainer.train()\nif {asked}: model.save_pretrained('out')\n"
)
NEIGHBOURS = (
    DIST + "rank, n = dist.get_rank(), dist.get_world_size()\n"
    "left, right = (rank - 1) % n, (rank + 1) % n\n"
)
RING = "collective-order-mismatch"
CASES = [
    # a ring in which nobody sends first
    (RING, NEIGHBOURS + "dist.recv(got, src=left)\ndist.send(x, dst=right)", [6]),
    (RING, NEIGHBOURS + "if n > 1:\n    dist.recv(got, left)\n    dist.send(x, right)", [7]),
    (RING, NEIGHBOURS + "w = dist.isend(x, right)\ndist.recv(got, left)\nw.wait()", []),
    (RING, NEIGHBOURS + "if turn > 0:\n    dist.recv(got, left)\ndist.send(x, right)", []),
    (RING, NEIGHBOURS + "if rank > 0:\n    dist.recv(got, rank - 1)\ndist.send(x, right)", []),
    (RING, NEIGHBOURS + "dist.recv(got, src=0)\ndist.send(x, dst=right)", []),
    (
        RING,
        NEIGHBOURS + "def middle():\n    dist.recv(got, rank - 1)\n    dist.send(x, rank + 1)\n"
        "if 0 < rank < n - 1:\n    middle()",
        [],
    ),
    # ranks that leave a loop miss its next turn
    (
        RANKS,
        DIST + "for x in rows:\n    dist.all_reduce(x)\n    if dist.get_rank() == 0 and x > 3:\n"
        "        break",
        [5],
    ),
    (
        RANKS,
        DIST + "for x in rows:\n    dist.all_reduce(x)\n    if dist.get_rank() == 0 and x > 3:\n"
        "        continue",
        [],
    ),
    # a pass or a call that some ranks leave out, on the way to one that all make
    (
        RANKS,
        DIST + "for x in rows:\n    if dist.get_rank() != 0:\n        continue\n    write(x)\n"
        "    dist.broadcast(x, 0)",
        [8],
    ),
    (
        RANKS,
        DIST + "def log(self, writer):\n    if dist.get_rank() == 0:\n"
        "        if writer is None:\n            return\n        writer.add(1)\n"
        "    dist.barrier()",
        [9],
    ),
    (
        RANKS,
        DIST + "def log(self, rows):\n    if dist.get_rank() == 0:\n        for x in rows:\n"
        "            if x is None:\n                continue\n    dist.barrier()",
        [],
    ),
    # a property that is named for the rank, whatever it asks
    (
        RANKS,
        DIST + "class Run:\n    @property\n    def is_rank_zero(self):\n"
        "        return self.cluster.number() == 0\n    def clean(self):\n"
        "        if self.is_rank_zero:\n            dist.barrier()",
        [10],
    ),
    (
        "collective-order-mismatch",
        DIST + "if dist.get_rank() == 0:\n    dist.all_reduce(x)\n    dist.broadcast(x, 0)\nelse:\n"
        "    dist.broadcast(x, 0)\n    dist.all_reduce(x)",
        [5],
    ),
    (
        "collective-order-mismatch",
        DIST + "if dist.get_rank() == 0:\n    dist.all_reduce(x)\n    dist.broadcast(x, 0)\nelse:\n"
        "    dist.all_reduce(y)\n    dist.broadcast(y, 0)",
        [],
    ),
    # a value that only the main rank sets
    (
        RANKS,
        DIST + "def stop(f):\n    why = None\n    if dist.get_rank() == 0:\n        why = f()\n"
        "    if why is not None:\n        dist.barrier()",
        [9],
    ),
    (
        RANKS,
        DIST + "def stop(f):\n    why = None\n    if dist.get_rank() == 0:\n        why = f()\n"
        "    why = agreed(why)\n    if why is not None:\n        dist.barrier()",
        [],
    ),
    # a function in whose two branches all ranks meet
    (
        RANKS,
        DIST + "def first(f):\n    if dist.get_rank() == 0:\n        f()\n        dist.barrier()\n"
        "    else:\n        dist.barrier()\ndef save(f):\n    if dist.get_rank() == 0:\n"
        "        first(f)",
        [12],
    ),
    (
        RANKS,
        DIST + "def first(f):\n    if dist.get_rank() == 0:\n        f()\n        dist.barrier()\n"
        "    else:\n        dist.barrier()\nfirst(print)",
        [],
    ),
    # wrapped models
    (
        RANKS,
        WRAPPED + "m = FSDP(net)\nif dist.get_rank() == 0:\n    with FSDP.summon_full_params(m):\n"
        "        f()",
        [9],
    ),
    (RANKS, WRAPPED + "m = FSDP(net)\nif dist.get_rank() == 0:\n    m.save_pretrained('a')", [9]),
    (RANKS, WRAPPED + BUFFERED + "if dist.get_rank() == 0:\n    m(x)", [9]),
    # it is made anew, and not wrapped
    (
        RANKS,
        WRAPPED + BUFFERED + "if dist.get_rank() == 0:\n    m = load('a')\n    m.eval()\n    m(x)",
        [],
    ),
    # it has buffers, as what makes it shows
    (
        RANKS,
        WRAPPED + "class Net(torch.nn.Module):\n    def __init__(self):\n"
        "        self.norm = torch.nn.BatchNorm1d(3)\n"
        "m = DDP(torch.nn.Sequential(Net().cuda()))\nif dist.get_rank() == 0:\n    m(x)",
        [12],
    ),
    # a function that makes one model or another
    (
        RANKS,
        WRAPPED + "def made(kind):\n    if kind:\n        return torch.nn.BatchNorm1d(3)\n"
        "    return torch.nn.Linear(1, 1)\nm = DDP(\n    made(kind)\n)\n"
        "if dist.get_rank() == 0:\n    m(x)",
        [],
    ),
    # an assignment over several lines
    (
        RANKS,
        WRAPPED
        + BUFFERED.replace("m = DDP(", "m = (").strip()
        + "\nm = DDP(\n    m,\n)\nif dist.get_rank() == 0:\n    m(x)",
        [12],
    ),
    # nothing shows that it has buffers
    (RANKS, WRAPPED + "m = DDP(net)\nif dist.get_rank() == 0:\n    m(x)", []),
    (RANKS, WRAPPED + "m = DDP(net)\nif dist.get_rank() == 0:\n    m.module(x)", []),
    (
        RANKS,
        WRAPPED + "m = DDP(net, broadcast_buffers=False)\nif dist.get_rank() == 0:\n    m(x)",
        [],
    ),
    (
        RANKS,
        WRAPPED
        + "def check(model):\n    if dist.get_rank() != 0:\n        return\n    model(x)\n"
        + BUFFERED
        + "check(m)",
        [10],
    ),
    (
        RANKS,
        WRAPPED + "def check(model):\n    if dist.get_rank() != 0:\n        return\n    model(x)\n"
        "m = DDP(net)\ncheck(m.module)",
        [],
    ),
    (
        RANKS,
        (
            "import deepspeed\nimport torch.distributed as dist\nif dist.get_rank() == 0:\n"
            "    with deepspeed.zero.GatheredParameters(p):\n        f()"
        ),
        [4],
    ),
    (
        RANKS,
        (
            "import lightning as L\nfrom lightning.fabric.strategies import FSDPStrategy\n"
            "fabric = L.Fabric(strategy=FSDPStrategy())\nmodel = fabric.setup_module(net)\n"
            "if fabric.global_rank == 0:\n    model(x)"
        ),
        [6],
    ),
    (
        RANKS,
        (
            "import lightning as L\nfabric = L.Fabric()\nmodel = fabric.setup_module(net)\n"
            "if fabric.global_rank == 0:\n    model(x)"
        ),
        [],
    ),
    # transformers' flag of the main rank
    (
        RANKS,
        (
            "from transformers import Trainer\nclass T(Trainer):\n    def end(self):\n"
            "        if self.args.should_save:\n            self.accelerator.wait_for_everyone()"
        ),
        [5],
    ),
    # clocks
    (
        RANKS,
        DIST + "start = time.time()\nfor x in rows:\n    dist.all_reduce(x)\n"
        "    if time.time() - start > 60:\n        break",
        [7],
    ),
    (
        RANKS,
        DIST + "start = time.time()\nfor x in rows:\n    dist.all_reduce(x)\n"
        "    late = torch.tensor(time.time() - start > 60)\n    dist.broadcast(late, 0)\n"
        "    if late:\n        break",
        [],
    ),
    (
        RANKS,
        DIST + "start = time.time()\nfor x in rows:\n    dist.all_reduce(x)\n"
        "    if time.time() - start > 60:\n        print('slow')",
        [],
    ),
    # an error that is swallowed only where there are no other ranks
    (
        RANKS,
        WRAPPED + "m = DDP(net)\nfor x in rows:\n    try:\n        m(x).backward()\n"
        "        opt.step()\n    except RuntimeError as e:\n        if 'memory' in str(e):\n"
        "            if dist.is_initialized():\n                raise\n            continue\n"
        "        raise",
        [],
    ),
    # a function that nothing calls
    (
        "checkpoint-corrupt",
        (
            "import torch\nimport torch.distributed as dist\ndef start():\n"
            "    dist.init_process_group('gloo')\ndef keep(x):\n    torch.save(x, 'a.pt')\nstart()"
        ),
        [],
    ),
    # an error that one rank swallows
    (
        RANKS,
        WRAPPED + "m = DDP(net)\nfor x in rows:\n    try:\n        m(x).backward()\n"
        "        opt.step()\n    except RuntimeError as e:\n        if 'memory' in str(e):\n"
        "            print('skipped')\n        else:\n            raise",
        [12],
    ),
    (
        RANKS,
        WRAPPED
        + "m = DDP(net)\nfor x in rows:\n    failed = 0\n    try:\n        m(x).backward()\n"
        "        opt.step()\n    except RuntimeError as e:\n        if 'memory' in str(e):\n"
        "            failed = 1\n        else:\n            raise\n    told = torch.tensor([failed])\n"
        "    dist.all_reduce(told)",
        [],
    ),
    (
        RANKS,
        WRAPPED + "m = DDP(net)\nfor x in rows:\n    try:\n        m(x).backward()\n"
        "        opt.step()\n    except RuntimeError as e:\n        if 'memory' in str(e):\n"
        "            raise Full from e\n        else:\n            raise",
        [],
    ),
    # seeds, shards, epochs
    (
        "multi-rank-mismatch",
        DIST + "from torch.utils.data import DistributedSampler\n"
        "s = DistributedSampler(d, seed=1 + dist.get_rank(), shuffle=False)",
        [5],
    ),
    (
        "multi-rank-mismatch",
        DIST + "from torch.utils.data import DistributedSampler\n"
        "s = DistributedSampler(d, seed=1 + args.seed, shuffle=False)",
        [],
    ),
    (
        "multi-rank-mismatch",
        DIST + "from torch.utils.data import DistributedSampler\ns = DistributedSampler(d)\n"
        "def train_epoch():\n    pass\nwhile True:\n    train_epoch()",
        [5],
    ),
    (
        "uneven-inputs",
        WRAPPED + "m = DDP(net)\nd = rows.shard(dist.get_world_size(), dist.get_rank())",
        [8],
    ),
    (
        "uneven-inputs",
        WRAPPED + "m = DDP(net)\nn = len(d) // dist.get_world_size() + 1\nr = dist.get_rank()\n"
        "e = d[r * n : (r + 1) * n]",
        [10],
    ),
    (
        "uneven-inputs",
        WRAPPED + "m = DDP(net)\nn = len(d) // dist.get_world_size()\nr = dist.get_rank()\n"
        "e = d[r * n : (r + 1) * n]",
        [],
    ),
    # forks by default
    (
        "cuda-in-forked-worker",
        (
            "import multiprocessing as mp\nm = f().cuda()\ndef work(q):\n    q.put(m(q))\n"
            "p = mp.Process(target=work, args=(1,))\np.start()"
        ),
        [6],
    ),
    (
        "cuda-in-forked-worker",
        (
            "import multiprocessing as mp\nm = f().cuda()\ndef work(q):\n    q.put(1)\n"
            "p = mp.Process(target=work, args=(1,))\np.start()"
        ),
        [],
    ),
    (
        "cuda-in-forked-worker",
        (
            "import multiprocessing as mp\nm = f().cuda()\ndef work(q):\n    return m(q)\n"
            "with mp.Pool(2) as pool:\n    pool.map(work, [1])"
        ),
        [5],
    ),
    (
        "cuda-in-forked-worker",
        (
            "import multiprocessing as mp\nmp.set_start_method('spawn')\nm = f().cuda()\n"
            "def work(q):\n    return m(q)\nwith mp.Pool(2) as pool:\n    pool.map(work, [1])"
        ),
        [],
    ),
    # GPUs of the rank's own, while GPU 0 stays the current one
    (
        "wrong-device-binding",
        (
            "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
            "dist.init_process_group('nccl')\nm = DistributedDataParallel(n, device_ids=[r])\n"
            "dist.broadcast_object_list(x)"
        ),
        [3],
    ),
    (  # a barrier takes the GPU that the group has used, or the one of the rank's number
        "wrong-device-binding",
        (
            "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
            "dist.init_process_group('nccl')\nm = DistributedDataParallel(n, device_ids=[r])\n"
            "dist.barrier()"
        ),
        [],
    ),
    (
        "wrong-device-binding",
        (
            "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"
            "dist.init_process_group('nccl')\nm = DistributedDataParallel(n, device_ids=[r])"
        ),
        [],
    ),
    (
        "wrong-device-binding",
        (
            "import torch.distributed as dist\n"
            "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
            "dist.init_process_group('nccl')\nm = FSDP(n)"
        ),
        [3],
    ),
    # one path for all ranks
    (
        "checkpoint-corrupt",
        DIST + "torch.save(m, '{}/model_{}.pt'.format(args.out, epoch))",
        [4],
    ),
    (
        "checkpoint-corrupt",
        DIST + "torch.save(m, '{}/model_{}.pt'.format(args.out, dist.get_rank()))",
        [],
    ),
    (
        "checkpoint-corrupt",
        DIST + "m = torch.jit.script(net)\nm.save(args.out + '/init.zip')",
        [5],
    ),
    (
        "checkpoint-corrupt",
        DIST
        + "m = torch.jit.script(net)\nif dist.get_rank() == 0:\n    m.save(args.out + '/init.zip')",
        [],
    ),
    ("checkpoint-corrupt", DIST + "figure.save(args.out + '/a.png')", []),
    ("checkpoint-corrupt", DIST + "torch.jit.save(net, args.out + '/init.zip')", [4]),
    (
        "checkpoint-corrupt",
        DIST + "from safetensors.torch import save_file\nsave_file(net, args.out + '/a')",
        [5],
    ),
    # turns, files of rows, and callers that start no ranks
    (
        "checkpoint-corrupt",
        DIST + "with zero_first(rank):\n    torch.save(x, args.out + '/cache.pt')",
        [],
    ),
    (
        "checkpoint-corrupt",
        DIST + "class D:\n    def __getitem__(self, i):\n"
        "        torch.save(i, self.out + '/rows.pt')",
        [],
    ),
    # the model that a Trainer has trained, which its configuration may shard
    (RANKS, TRAINED.format(made="Trainer(model)", asked="rank == 0"), [8]),
    (RANKS, TRAINED.format(made="make(model)", asked="rank == 0"), [8]),
    (RANKS, TRAINED.format(made="Trainer(other)", asked="rank == 0"), []),
    (RANKS, TRAINED.format(made="Trainer(net, tokenizer=model)", asked="rank == 0"), []),
    (
        RANKS,
        TRAINED.format(made="Trainer(model)", asked="rank == 0").replace(
            "'out'", "'out', state_dict=gathered"
        ),
        [],
    ),
    # ranks that leave before the group is made of the others
    (
        RANKS,
        (
            "import os\nimport torch.distributed as dist\nif int(os.environ['RANK']) % 4 != 0:\n"
            "    exit(0)\ndist.init_process_group('nccl', world_size=n, rank=r)\ndist.barrier()"
        ),
        [],
    ),
    (
        RANKS,
        (
            "import os\nimport torch.distributed as dist\nif int(os.environ['RANK']) % 4 != 0:\n"
            "    exit(0)\ndist.init_process_group('nccl')\ndist.barrier()"
        ),
        [5, 6],
    ),
    (RANKS, TRAINED.format(made="Trainer(model)", asked="rank == 0 and not cfg.zero3"), [8]),
    (RANKS, TRAINED.format(made="Trainer(model)", asked="rank == 0 and not cfg.fsdp"), []),
    ("checkpoint-corrupt", DIST + "model.save_pretrained(args.output_dir)", [4]),
    ("checkpoint-corrupt", DIST + "tokenizer.save_pretrained(args.output_dir)", []),
    (
        "checkpoint-corrupt",
        (
            "import fire, os\nfrom transformers import Trainer\nrank = os.environ['LOCAL_RANK']\n"
            "def train(cfg):\n    Trainer(m).train()\n    model.save_pretrained(cfg.output_dir)\n"
            "fire.Fire(train)"
        ),
        [6],
    ),
    (
        "checkpoint-corrupt",
        (
            "import os\nfrom transformers import Trainer\nrank = os.environ['LOCAL_RANK']\n"
            "def train(cfg):\n    Trainer(m).train()\n    model.save_pretrained(cfg.output_dir)"
        ),
        [],
    ),
    (
        "checkpoint-corrupt",
        DIST + "model.save_pretrained(args.output_dir, is_main_process=first)",
        [],
    ),
    (
        "checkpoint-corrupt",
        (
            "import os, torch\nfrom transformers import Trainer\nclass T(Trainer):\n"
            "    def _save_optimizer_and_scheduler(self, output_dir):\n"
            "        torch.save(1, os.path.join(output_dir, 'x.pt'))"
        ),
        [5],
    ),
    (
        "checkpoint-corrupt",
        (
            "import os, torch\nfrom transformers import Trainer\nclass T(Trainer):\n"
            "    def _save_optimizer_and_scheduler(self, output_dir):\n"
            "        if self.args.should_save:\n"
            "            torch.save(1, os.path.join(output_dir, 'x.pt'))"
        ),
        [],
    ),
]


@pytest.mark.parametrize(("cause", "text", "lines"), CASES)
def test_cases(cause: str, text: str, lines: list[int]) -> None:
    assert lines_of(cause, a=text) == lines


SAVER = "import torch\ndef keep(x, out='a.pt'):\n    torch.save(x, out)\n"
OFFLINE = "from saver import keep\nkeep(1)\n"
GUARDED = (
    "from accelerate import Accelerator\nfrom saver import keep\na = Accelerator()\n"
    "if a.is_main_process:\n    keep(1)\n"
)
UNGUARDED = GUARDED.replace("if a.is_main_process", "if True")


@pytest.mark.parametrize(("trains", "found"), [(GUARDED, []), (UNGUARDED, ["at/saver.py"])])
def test_a_script_that_starts_no_ranks_is_no_caller_on_all_ranks(
    trains: str, found: list[str]
) -> None:
    program = program_of(saver=SAVER, export=OFFLINE, train=trains)
    assert [each.file for each in findings_of(program)[0]] == found


NANS = DIST + "for x in rows:\n    y = f(x)\n    {}\n    if torch.isnan(y):\n        continue\n"
NANS += "    dist.all_reduce(y)"


@pytest.mark.parametrize(("told", "found"), [("", [7]), ("dist.all_reduce(y)", [])])
def test_own_data_is_a_hint(told: str, found: list[int]) -> None:
    program = program_of(a=NANS.format(told))
    assert findings_of(program)[0] == []
    assert [each.line for each in findings_of(program, hints=True)[0]] == found
