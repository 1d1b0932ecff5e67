"""Where the rules about loaders, data sets, devices, forks and the environment speak, and where
they must not.
"""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import lines_of

LOADER = "from torch.utils.data import DataLoader, Dataset\n"
DIST = (
    "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import"
    " DistributedDataParallel as DDP\ndist.init_process_group('gloo')\n"
)
ROWS = (
    "class D(Dataset):\n    def __init__(self, p):\n        {}\n    def __len__(self):\n       "
    " return len(self.x)\n    def __getitem__(self, i):\n        return"
    " self.x[i]\nDataLoader(D('a'), num_workers={})"
)
MAPPED = "import datasets\nd = datasets.load_dataset('x')\nm = f().cuda()\n"
FORKED = (
    "import multiprocessing\nm = f().cuda()\ndef work():\n    {}\n"
    "made = multiprocessing.get_context('fork')\np = made.Process(target=work)\np.start()\n"
)
CASES = [
    # an even share of the CPUs is what is asked for
    (
        "cpu-oversubscribed",
        "import os\n" + LOADER + DIST + "DataLoader([], num_workers=os.cpu_count())",
        [7],
    ),
    (
        "cpu-oversubscribed",
        "import os\n" + LOADER + DIST + "DataLoader([], num_workers=os.cpu_count() // 8)",
        [],
    ),
    (
        "cpu-oversubscribed",
        "import os\n" + LOADER + "DataLoader([], num_workers=os.cpu_count())",
        [],
    ),
    ("cpu-oversubscribed", LOADER + "n = 8 - 1\nDataLoader([], num_workers=n)", []),
    ("cpu-oversubscribed", LOADER + "n = 256 - 1\nDataLoader([], num_workers=n)", [3]),
    # CUDA before a fork
    (
        "cuda-in-forked-worker",
        MAPPED + "d.map(lambda r: m(r), num_proc=2)",
        [4],
    ),
    ("cuda-in-forked-worker", MAPPED + "d.map(lambda r: len(r), num_proc=2)", []),
    ("cuda-in-forked-worker", MAPPED + "d.map(unknown, num_proc=2)", []),
    ("cuda-in-forked-worker", MAPPED + "d.map(g, fn_kwargs={'m': m}, num_proc=2)", [4]),
    (
        "cuda-in-forked-worker",
        MAPPED + "def g(r):\n    return h(r)\ndef h(r):\n    return m(r)\nd.map(g, num_proc=2)",
        [8],
    ),
    (
        "cuda-in-forked-worker",
        (
            "m = f()\nm.cuda()\nclass G:\n    def __call__(self, r):\n        return m(r)\n"
            "d.map(G(), num_proc=2)"
        ),
        [6],
    ),
    (
        "cuda-in-forked-worker",
        (
            "import datasets\nd = datasets.load_dataset('x')\nd.map(lambda r: m(r), num_proc=2)\nm ="
            " f().cuda()"
        ),
        [],
    ),
    (
        "cuda-in-forked-worker",
        MAPPED + "d.map(lambda r: m(r), num_proc=None)",
        [],
    ),
    (
        "cuda-in-forked-worker",
        "import datasets\nd = datasets.load_dataset('x')\nd.map(lambda r: r.cuda(), num_proc=2)",
        [],
    ),
    (
        "cuda-in-forked-worker",
        "if a:\n    m = f().cuda()\nelse:\n    d.map(lambda r: r.cuda(), num_proc=2)",
        [],
    ),
    (
        "cuda-in-forked-worker",
        LOADER + "def c(b):\n    return b.cuda()\nDataLoader([], collate_fn=c, num_workers=2)",
        [3],
    ),
    (
        "cuda-in-forked-worker",
        LOADER + "def c(b):\n    return b.cuda()\nDataLoader([], collate_fn=c, num_workers=0)",
        [],
    ),
    (
        "cuda-in-forked-worker",
        LOADER + "def c(b):\n    return b.cuda()\nDataLoader([], collate_fn=c, num_workers=2,"
        " multiprocessing_context='spawn')",
        [],
    ),
    # data sets
    (
        "dataset-memory-blowup",
        "import json\n" + LOADER + ROWS.format("self.x = json.load(open(p))", 4),
        [5],
    ),
    (
        "dataset-memory-blowup",
        "import json\n" + LOADER + ROWS.format("self.x = json.load(open(p))", 0),
        [],
    ),
    (
        "dataset-memory-blowup",
        "import numpy\n" + LOADER + ROWS.format("self.x = numpy.load(p)", 4),
        [],
    ),
    ("unpicklable-dataset", LOADER + ROWS.format("self.x = open(p)", 4), [4]),
    ("unpicklable-dataset", LOADER + ROWS.format("self.x = [p]", 4), []),
    # samplers
    ("multi-rank-mismatch", LOADER + DIST + "DDP(m)\nDataLoader([], shuffle=True)", [7]),
    ("multi-rank-mismatch", LOADER + DIST + "DDP(m)\nDataLoader([])", []),
    (
        "multi-rank-mismatch",
        LOADER + DIST + "DDP(m)\ns = pick()\nDataLoader([], shuffle=s is None, sampler=s)",
        [],
    ),
    ("multi-rank-mismatch", LOADER + "DataLoader([], shuffle=True)", []),
    ("uneven-inputs", DIST + "DDP(m)\nx = x[dist.get_rank()::dist.get_world_size()]", [6]),
    ("uneven-inputs", DIST + "DDP(m)\nx = x[dist.get_rank():total:dist.get_world_size()]", []),
    (
        "uneven-inputs",
        DIST + "DDP(m)\nfor i in x:\n    if i % dist.get_world_size() == dist.get_rank():\n"
        "        y.append(i)",
        [7],
    ),
    (
        "uneven-inputs",
        DIST + "DDP(m)\nfor i in x:\n    if i % dist.get_world_size() == dist.get_rank():\n"
        "        y.append(read(i))\n    else:\n        y.append(i)",
        [],
    ),
    ("uneven-inputs", DIST + "x = x[dist.get_rank()::dist.get_world_size()]", []),
    # the device of a rank
    (
        "wrong-device-binding",
        "import torch.distributed as dist\ndist.init_process_group('nccl')\nm = f().cuda()",
        [2],
    ),
    (
        "wrong-device-binding",
        "import torch.distributed as dist\ndist.init_process_group('gloo')\nm = f().cuda()",
        [],
    ),
    (
        "wrong-device-binding",
        (
            "import torch.distributed as dist\ndist.init_process_group('nccl', device_id=d)\nm ="
            " f().cuda()"
        ),
        [],
    ),
    (
        "wrong-device-binding",
        (
            "import torch.distributed as dist\ndist.init_process_group('nccl')\nm ="
            " f().cuda(local_rank)"
        ),
        [],
    ),
    # processes
    ("missing-main-guard", "import torch.multiprocessing as mp\nmp.spawn(f)", [2]),
    (
        "missing-main-guard",
        "import torch.multiprocessing as mp\nif __name__ == '__main__':\n    mp.spawn(f)",
        [],
    ),
    ("missing-main-guard", "import torch.multiprocessing as mp\ndef main():\n    mp.spawn(f)", []),
    (
        "fork-inherited-lock",
        "import os, threading\nthreading.Thread(target=f).start()\nos.fork()",
        [3],
    ),
    (
        "fork-inherited-lock",
        "import os, threading\nos.fork()\nthreading.Thread(target=f).start()",
        [],
    ),
    ("cuda-in-forked-worker", FORKED.format("print(1)"), []),
    ("cuda-in-forked-worker", FORKED.format("m(1)"), [7]),
    ("unpicklable-dataset", "import torch.multiprocessing as mp\nmp.spawn(lambda i: i)", [2]),
    ("unpicklable-dataset", "import torch.multiprocessing as mp\nmp.spawn(f)", []),
    # saving
    ("checkpoint-corrupt", DIST + "torch.save(s, 'a.pt')", [5]),
    ("checkpoint-corrupt", DIST + "torch.save(s, f'a-{dist.get_rank()}.pt')", []),
    ("checkpoint-corrupt", DIST + "if dist.get_rank() == 0:\n    torch.save(s, 'a.pt')", []),
    ("checkpoint-corrupt", "import torch\ntorch.save(s, 'a.pt')", []),
    ("checkpoint-corrupt", DIST + "torch.save(s, f'a-{args.gpu}.pt')", []),
    ("checkpoint-corrupt", DIST + "torch.save(s, 'a%d' % torch.cuda.current_device())", []),
    (
        "checkpoint-corrupt",
        DIST + "def best(x):\n    if x:\n        return best(x[1:])\n    torch.save(s, 'a.pt')\n"
        "if dist.get_rank() == 0:\n    best(y)",
        [],
    ),
    # errors that one rank survives
    (
        "rank-conditional-collective",
        DIST + "try:\n    loss.backward()\nexcept Exception:\n    pass",
        [7],
    ),
    (
        "rank-conditional-collective",
        DIST + "try:\n    loss.backward()\nexcept Exception:\n    raise",
        [],
    ),
    (
        "rank-conditional-collective",
        DIST + "try:\n    loss.backward()\nexcept KeyboardInterrupt:\n    pass",
        [],
    ),
    (
        "rank-conditional-collective",
        (
            DIST
            + "def fail(e):\n    print(e)\n    raise RuntimeError from e\n"
            + "def log(e):\n    fail(e)\n"
            + "try:\n    loss.backward()\nexcept Exception as e:\n    log(e)"
        ),
        [],
    ),
    # one operation of a backward pass
    (
        "rank-conditional-collective",
        DIST + "class F(torch.autograd.Function):\n    def backward(ctx, g):\n        try:\n"
        "            g.backward()\n        except RuntimeError:\n            return None",
        [],
    ),
    # the environment
    ("cpu-oversubscribed", "import os\nimport numpy\nos.environ['OMP_NUM_THREADS'] = '1'", [3]),
    ("cpu-oversubscribed", "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport numpy", []),
    ("hub-unreachable", "import os\nimport transformers\nos.environ['HF_HOME'] = '/x'", [3]),
    ("hub-unreachable", "import os\nimport torch\nos.environ['HF_HOME'] = '/x'", []),
    # MPS
    ("mps-backend", "import torch\ntorch.zeros(1, dtype=torch.float64, device='mps')", [2]),
    (
        "mps-backend",
        "import torch\ntorch.zeros(1, dtype=torch.float64, device='cpu')\nx = 'mps'",
        [],
    ),
]


@pytest.mark.parametrize(("cause", "source", "lines"), CASES)
def test_a_rule_speaks_where_it_should(cause: str, source: str, lines: list[int]) -> None:
    assert lines_of(cause, train=source) == lines


def test_what_a_module_does_only_as_a_script_is_not_done_where_it_is_imported() -> None:
    lib = "m = f()\nif __name__ == '__main__':\n    m.cuda()\n"
    source = "import lib\nd.map(lambda r: lib.m(r.cuda()), num_proc=2)\n"

    assert lines_of("cuda-in-forked-worker", lib=lib, train=source) == []
    assert lines_of("cuda-in-forked-worker", lib="m = f().cuda()\n", train=source) == [2]


SAMPLED = (
    "import torch.distributed as dist\nfrom torch.utils.data import DataLoader, DistributedSampler\n"
    "class Own(DistributedSampler):\n    def {}(self):\n        yield 1\n"
    "loader = DataLoader(data, sampler={}(data))\nfor epoch in range(n):\n    {}\n"
)


@pytest.mark.parametrize(
    ("method", "sampler", "called", "lines"),
    [
        ("__iter__", "DistributedSampler", "pass", [6]),
        ("__iter__", "Own", "pass", []),
        ("other", "Own", "pass", [6]),
        ("other", "Own", "loader.sampler.set_epoch(epoch)", []),
        ("other", "Own", "lib.set_sampler_epoch(loader, epoch)", []),
        ("other", "Own", "print('set_epoch of the sampler')", [6]),
    ],
)
def test_who_sets_the_epoch(method: str, sampler: str, called: str, lines: list[int]) -> None:
    assert lines_of("multi-rank-mismatch", train=SAMPLED.format(method, sampler, called)) == lines


def test_a_script_beside_the_job_saves_for_itself() -> None:
    lib = "import torch.distributed as dist\ndef start():\n    dist.init_process_group('nccl')\n"
    save = "import lib, torch\n{}torch.save(x, 'a.pt')\n"

    assert lines_of("checkpoint-corrupt", lib=lib, train=save.format("")) == []
    assert lines_of("checkpoint-corrupt", lib=lib, train=save.format("lib.start()\n")) == [3]
