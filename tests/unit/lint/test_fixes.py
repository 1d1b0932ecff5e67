"""Every rewrite that is called safe: the program parses, does on one rank what it did, draws the
finding no more, and a second run changes nothing.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gallery.lint.score import PROGRAMS
from trainprobe.cli.linting import LeaveOut, look
from trainprobe.lint.model import Finding
from trainprobe.lint.output import LintResult

HEAD = "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
RUNNABLE = {
    "barrier-last": HEAD + "if dist.get_rank() == 0:\n    print('main')\n    dist.barrier()\n",
    "barrier-first": HEAD + "if dist.get_rank() == 0:\n    dist.barrier()\n    "
    "print('main')\nprint('all')\n",
    "barrier-alone": HEAD + "def main():\n    rank = dist.get_rank()\n    if rank == 0:\n        "
    "dist.barrier()\n    print('all', rank)\nmain()\n",
    "reduce-first": HEAD + "x = torch.ones(2)\nif dist.get_rank() == 0:\n    dist.all_reduce(x)\n "
    "   print(x)\nelse:\n    print('other')\n",
    "gather-first": HEAD
    + "def mean(x):\n    held = [torch.zeros_like(x)]\n    if not dist.get_rank():\n        dist.all_gather(held, x)\n        print(held)\n    return x\nmean(torch.ones(1))\n",
    "save": HEAD + "if True:\n\ttorch.save({\n    'text': '''a\n  b''',\n\t}, "
    "'held.pt')\nprint(torch.load('held.pt'))\n",
    "save-in-function": HEAD + "def keep(epoch, net):\n    torch.save(net.state_dict(), "
    "f'net-{epoch}.pt')  # all\n    print(epoch)\nkeep(3, torch.nn.Linear(1, 1))\n",
    "device": "import torch\nimport torch.distributed as dist\nCUDA = "
    "torch.cuda.is_available()\ndist.init_process_group('nccl' if torch.cuda.is_available() else "
    "'gloo')\n"
    "net = torch.ones(1).to('cuda' if torch.cuda.is_available() else 'cpu')\nprint(net.sum(), "
    "CUDA)\n",
    "threads": "import os\n"
    + HEAD
    + "torch.set_num_threads(os.cpu_count())\nprint(torch.get_num_threads())\n",
    "threads-by-variable": "from multiprocessing import cpu_count\nimport os as "
    "system\nsystem.environ['OMP_NUM_THREADS'] = str(cpu_count())\n"
    + HEAD
    + "print(system.environ['OMP_NUM_THREADS'])\n",
    "workers": '"""A script."""\nfrom __future__ import annotations\nimport multiprocessing\n'
    + HEAD
    + "from torch.utils.data import DataLoader\nloader = DataLoader([], num_workers=multiprocessing.cpu_count())\nprint(loader.num_workers)\n",
    "workers-or-one": "import os\n" + HEAD + "from torch.utils.data import DataLoader\nN = "
    "os.cpu_count() or 1\nprint(DataLoader([1], num_workers=N).num_workers)\n",
    "late-threads": "import json\nimport numpy\nimport os\n\nos.environ['OMP_NUM_THREADS'] = "
    "'2'\nprint(numpy.ones(2), json.dumps(os.environ['OMP_NUM_THREADS']))\n",
    "opencv": "import cv2\nfrom torch.utils.data import DataLoader, Dataset\nclass D(Dataset):\n  "
    "  def __getitem__(self, i):\n        return cv2.imread(i)\n"
    "    def __len__(self):\n        return 2\nDataLoader(D(), num_workers=2)\nprint(D()[1])\n",
    "columns": "from transformers import Trainer, TrainingArguments\ndef collate(rows):\n    "
    "return [row['image'] for row in rows]\n"
    "args = TrainingArguments(\n    'out',  # here\n)\nprint(Trainer(None, args, "
    "data_collator=collate) is None)\n",
    "tokenizers": "import os\nfrom torch.utils.data import "
    "DataLoader\nos.environ['TOKENIZERS_PARALLELISM'] = 'true'\nprint(DataLoader([1], "
    "num_workers=1).num_workers)\n",
}
STUBS = {
    "cv2.py": "def setNumThreads(n): pass\ndef imread(path): return path\n",
    "transformers.py": (
        "class TrainingArguments:\n    def __init__(self, *a, **k): pass\nclass"
        " Trainer(TrainingArguments): pass\n"
    ),
}
RUNNER = """
import io, json, os, runpy, sys, contextlib, traceback
import torch
told = {}
for path in json.load(sys.stdin):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        out = io.StringIO()
        os.chdir(os.path.dirname(path))
        sys.path.insert(0, os.path.dirname(os.path.dirname(path)))
        with contextlib.redirect_stdout(out):
            try:
                runpy.run_path(path, run_name="__main__")
            except BaseException as error:
                out.write(f"{type(error).__name__}: {error}")
        os.write(write, out.getvalue().encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as held:
        told[path] = held.read()
    os.waitpid(child, 0)
print(json.dumps(told))
"""


def looked(path: Path, *, fix: bool = False) -> LintResult:
    """What lint says with hints, some of which have rewrites."""
    return look(
        [str(path)], select=(), ignore=(), fix=fix, diff=False, leave_out=LeaveOut(hints=False)
    )[0]


def mend(path: Path) -> list[Finding]:
    return list(looked(path, fix=True).mended)


def texts(path: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in sorted(path.rglob("*.py")) if one.is_file()}


def check_mended(path: Path) -> list[Finding]:
    """Mend what lies at `path`, and return what was mended."""
    done = mend(path)
    after = texts(path.parent)
    for text in after.values():
        ast.parse(text)
    left = looked(path).findings
    assert [one for one in left if one.fix is not None and one.fix.safe] == []
    assert mend(path) == []
    assert texts(path.parent) == after
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "fixes"
    for side in ("before", "after"):
        for name, text in RUNNABLE.items():
            (made / side / name).mkdir(parents=True)
            (made / side / name / "train.py").write_text(text)
        for name, text in STUBS.items():
            (made / side / name).write_text(text)
    return made


def test_each_rewrite_is_done_once_and_takes_its_finding_away(folder: Path) -> None:
    for name in RUNNABLE:
        path = folder / "after" / name / "train.py"
        first = looked(path).findings
        done = check_mended(path)
        assert done, name
        left = looked(path).findings
        assert {one.rule for one in left}.isdisjoint(one.rule for one in done), (name, left)
        assert len(left) <= len(first) - len(done), (name, left)


@pytest.mark.torch
def test_mended_programs_do_on_one_rank_what_they_did(folder: Path) -> None:
    for name in RUNNABLE:
        assert mend(folder / "after" / name / "train.py"), name
    around = os.environ | {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }
    paths = [
        str(folder / side / name / "train.py") for name in RUNNABLE for side in ("before", "after")
    ]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        env=around,
        timeout=120,
        check=True,
    )
    told = json.loads(ran.stdout)
    for name in RUNNABLE:
        before, after = (
            told[str(folder / side / name / "train.py")] for side in ("before", "after")
        )
        assert before == after, name
        assert before, name
        assert "Error" not in before, (name, before)


def test_the_guard_lets_a_spawned_script_start(tmp_path: Path) -> None:
    text = (
        "import multiprocessing as mp\ndef work(i):\n    print('worked', i, flush=True)\ndef"
        " main():\n    one = mp.get_context('spawn').Process(target=work, args=(1,))\n   "
        " one.start()\n    one.join()\nmain()\n"
    )
    (tmp_path / "train.py").write_text(text)
    (done,) = check_mended(tmp_path / "train.py")
    assert done.rule == "missing-main-guard"
    assert (tmp_path / "train.py").read_text() == text.replace(
        "\nmain()\n", '\nif __name__ == "__main__":\n    main()\n'
    )
    ran = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout == "worked 1\n"


@pytest.mark.parametrize(
    "source",
    [
        # the state dict of a sharded model is gathered from all ranks
        HEAD + "from torch.distributed.fsdp import FullyShardedDataParallel as F\nm ="
        " F(net)\ntorch.save(m.state_dict(), 'a.pt')\n",
        HEAD + "a = torch.save(x, 'a.pt')\n",
        HEAD + "x = 1; torch.save(x, 'a.pt')\n",
        # what the collective is given is there on one rank alone
        HEAD
        + "if dist.get_rank() == 0:\n    x = 1\nif dist.get_rank() == 0:\n    dist.all_reduce(x)\n "
        "   print(x)\n",
        HEAD + "if dist.get_rank() == 0 and step % 10 == 0:\n    dist.barrier()\n    print(x)\n",
        HEAD + "if dist.get_rank() == 0:\n    print(x)\n    dist.all_reduce(x)\n",
        HEAD + "if a:\n    pass\nelif dist.get_rank() == 0:\n    dist.barrier()\n    print(x)\n",
        HEAD + "if dist.get_rank() == 0: dist.barrier()\n",
        # GPU 0 is named, or spawned ranks have no LOCAL_RANK
        HEAD.replace("gloo", "nccl") + "net = net.to('cuda:0')\n",
        HEAD.replace("'gloo'", "'nccl', rank=r, world_size=2") + "net = net.cuda()\n",
        # os is another thing here
        "from multiprocessing import cpu_count\nos = 1\n"
        + HEAD
        + "torch.set_num_threads(cpu_count())\n",
    ],
)
def test_what_is_not_safe_is_left(source: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(source)
    told, _ = look(
        [str(tmp_path)],
        select=(),
        ignore=(),
        fix=True,
        diff=False,
        leave_out=LeaveOut(hints=False),
    )
    assert told.findings
    assert (tmp_path / "train.py").read_text() == source


def test_planted_programs_can_be_mended(tmp_path: Path) -> None:
    shutil.copytree(PROGRAMS, tmp_path / "programs")
    mended = 0
    for entry in sorted((tmp_path / "programs").glob("*/*")):
        if entry.suffix == ".py" or entry.is_dir():
            held = tmp_path / "one" / entry.parent.name / entry.name
            held.parent.mkdir(parents=True, exist_ok=True)
            entry.rename(held)
            mended += len(check_mended(held))
            shutil.rmtree(held.parent)
    assert mended >= 20
