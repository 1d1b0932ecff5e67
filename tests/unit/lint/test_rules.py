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
        "import datasets\nd = datasets.load_dataset('x')\nm = f().cuda()\nd.map(g, num_proc=2)",
        [4],
    ),
    (
        "cuda-in-forked-worker",
        "import datasets\nd = datasets.load_dataset('x')\nd.map(g, num_proc=2)\nm = f().cuda()",
        [],
    ),
    (
        "cuda-in-forked-worker",
        "import datasets\nd = datasets.load_dataset('x')\nm = f().cuda()\nd.map(g, num_proc=None)",
        [],
    ),
    (
        "cuda-in-forked-worker",
        "import datasets\nd = datasets.load_dataset('x')\nd.map(lambda r: r.cuda(), num_proc=2)",
        [],
    ),
    ("cuda-in-forked-worker", "if a:\n    m = f().cuda()\nelse:\n    d.map(g, num_proc=2)", []),
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
    ("unpicklable-dataset", "import torch.multiprocessing as mp\nmp.spawn(lambda i: i)", [2]),
    ("unpicklable-dataset", "import torch.multiprocessing as mp\nmp.spawn(f)", []),
    # saving
    ("checkpoint-corrupt", DIST + "torch.save(s, 'a.pt')", [5]),
    ("checkpoint-corrupt", DIST + "torch.save(s, f'a-{dist.get_rank()}.pt')", []),
    ("checkpoint-corrupt", DIST + "if dist.get_rank() == 0:\n    torch.save(s, 'a.pt')", []),
    ("checkpoint-corrupt", "import torch\ntorch.save(s, 'a.pt')", []),
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
