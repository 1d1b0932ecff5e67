"""Collectives that only some ranks reach."""

from __future__ import annotations

import pytest

from tests.unit.lint.reading_sources import found, lines_of

ID = "rank-conditional-collective"
HEAD = "import torch.distributed as dist\nrank = dist.get_rank()\n"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("if rank == 0:\n    dist.barrier()", [4]),
        ("if rank == 0:\n    pass\nelse:\n    dist.barrier()", [6]),
        ("if rank == 0:\n    dist.broadcast(a, 0)\nelse:\n    dist.broadcast(b, 0)", []),
        ("if rank != 0:\n    dist.barrier()\nwork()\nif rank == 0:\n    dist.barrier()", []),
        ("if rank == 0:\n    dist.send(a, 1)\nelse:\n    dist.recv(a, 0)", []),
        ("if rank < 4:\n    dist.all_reduce(a, group=half)", []),
        ("if rank == 0:\n    print()\ndist.barrier()", []),
        ("def f():\n    if rank != 0:\n        return\n    dist.barrier()", [6]),
        (
            (
                "def f():\n    if rank != 0:\n        dist.barrier()\n        return\n    work()\n "
                "   dist.barrier()"
            ),
            [],
        ),
        (
            (
                "def f():\n    for x in y:\n        if rank:\n            continue\n       "
                " dist.all_reduce(x)"
            ),
            [7],
        ),
        ("def f():\n    g()\ndef g():\n    dist.barrier()\nif rank == 0:\n    f()", [8]),
        (
            (
                "from lightning.pytorch.utilities import rank_zero_only\n@rank_zero_only\ndef"
                " f():\n    dist.barrier()"
            ),
            [6],
        ),
        (
            (
                "def only(fn):\n    def run(*a):\n        if rank == 0:\n            return"
                " fn(*a)\n    return run\n@only\ndef f():\n    dist.barrier()"
            ),
            [10],
        ),
        ("def f(fn):\n    if rank == 0:\n        f(fn)\n    f(fn)", []),
    ],
)
def test_torch(source: str, lines: list[int]) -> None:
    assert lines_of(ID, train=HEAD + source) == lines


def test_the_way_through_another_file_is_told() -> None:
    lib = (
        "import torch.distributed as dist\nclass Saver:\n    def save(self):\n        self.sync()\n"
        "    def sync(self):\n        dist.barrier()\n"
    )
    (one,) = found(
        lib__saver=lib,
        train=(
            "import torch.distributed as dist\nfrom lib.saver import Saver\ns = Saver()\nif"
            " dist.get_rank() == 0:\n    s.save()\n"
        ),
    )
    assert (one.id, one.file, one.line) == (ID, "at/train.py", 5)
    assert "save() -> sync() calls barrier at at/lib/saver.py:6" in one.says


RUNNER = (
    "import torch.distributed as dist\nclass Runner:\n    def save_state_of(self):\n"
    "        self.link.barrier('saved')\n"
)
HOOK = "class Hook:\n    def end(self, run):\n        if run.is_main:\n            run.{}()\n"


def test_a_method_of_an_object_of_unknown_class_is_followed_by_its_name_alone() -> None:
    files = {"hook": HOOK.format("save_state_of"), "train": f"import hook\n{RUNNER}"}

    (one,) = found(**files)
    assert (one.id, one.file, one.line) == (ID, "at/hook.py", 4)
    assert one.reaches == ("at/train.py", 5)

    other = "class Other:\n    def save_state_of(self):\n        pass\n"
    assert found(**files, other=other) == []
    one_word = {name: text.replace("save_state_of", "save") for name, text in files.items()}
    assert found(**one_word) == []


@pytest.mark.parametrize(
    "source",
    [
        (
            "from accelerate import Accelerator\na = Accelerator()\nif a.is_main_process:\n   "
            " a.wait_for_everyone()"
        ),
        (
            "from accelerate import Accelerator\na = Accelerator(fsdp_plugin=plugin)\nif"
            " a.is_main_process:\n    a.save_state('x')"
        ),
        (
            "from transformers import Trainer\nt = Trainer()\nif t.is_world_process_zero():\n   "
            " t.evaluate()"
        ),
        "import lightning as L\nt = L.Trainer()\nif t.is_global_zero:\n    t.save_checkpoint('x')",
        (
            "from torch.distributed.fsdp import FullyShardedDataParallel as F\nm = F(net)\nif rank"
            " == 0:\n    m.state_dict()"
        ),
        (
            "from torch.distributed.fsdp import FullyShardedDataParallel as F\ndef ev(model):\n   "
            " model(1)\nm = F(net)\nif rank == 0:\n    ev(m)"
        ),
    ],
)
def test_calls_of_frameworks(source: str) -> None:
    assert lines_of(
        ID,
        train=source.replace("rank ==", "int(__import__('os').environ['RANK']) ==").replace(
            "__import__('os')", "os"
        )
        + "\nimport os\n",
    )


@pytest.mark.parametrize(
    "source",
    [
        # under DDP each rank writes its own part of the state, and nobody waits
        (
            "from accelerate import Accelerator\na = Accelerator()\nif a.is_main_process:\n   "
            " a.save_state('x')"
        ),
        (
            "from accelerate import Accelerator\na = Accelerator()\nif a.is_main_process or"
            " a.distributed_type == 'DEEPSPEED':\n    a.save_state('x')"
        ),
        # ranks that leave, and the collective, ask for the same
        (
            "def f(fsdp, rank):\n    if not fsdp and rank != 0:\n        return\n    if fsdp:\n    "
            "    dist.broadcast(x, 0)"
        ),
        (
            "def g(fsdp):\n    if fsdp:\n        dist.barrier()\ndef f(fsdp, rank):\n    if not"
            " fsdp and rank != 0:\n        return\n    g(fsdp)"
        ),
        (
            "rank = dist.get_rank()\nif rank <= 1:\n    dist.init_process_group('gloo', rank=rank,"
            " world_size=2)"
        ),
    ],
)
def test_conditions_that_keep_ranks_together(source: str) -> None:
    assert lines_of(ID, train="import torch.distributed as dist\n" + source) == []


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("save()", []),
        ("save(sync=False)", []),
        ("save(sync=True)", [8]),
        ("save(flag)", [8]),
        ("outer()", []),
        ("outer(True)", [8]),
    ],
)
def test_a_collective_that_an_argument_turns_off(call: str, lines: list[int]) -> None:
    source = "def save(sync=False):\n    if sync:\n        dist.barrier()\n"
    outer = "def outer(sync=False): save(sync)\n"
    assert (
        lines_of(
            ID,
            train=(
                f"import torch.distributed as dist\n{source}{outer}rank = dist.get_rank()\nif rank"
                f" == 0:\n    {call}\n"
            ),
        )
        == lines
    )


def test_a_truth_about_the_rank_that_is_kept_on_the_options() -> None:
    source = "args = read()\nargs.saves = args.logs and dist.get_rank() == 0\n"
    assert lines_of(
        ID, train=f"import torch.distributed as dist\n{source}if args.saves:\n    dist.barrier()\n"
    ) == [5]
    assert (
        lines_of(
            "checkpoint-corrupt",
            train=(
                f"import torch\n{HEAD}dist.init_process_group()\n{source}if args.saves:\n   "
                " torch.save(x, 'a.pt')\n"
            ),
        )
        == []
    )


def test_a_module_beside_the_importer_is_nearer_than_one_of_the_same_name_elsewhere() -> None:
    texts = {
        "utils": HEAD,
        "one__utils": "barrier = print",
        "one__train": "from utils import barrier\nif rank == 0:\n    barrier()",
    }
    assert found(**texts) == []


def test_different_collectives_on_two_sides_are_an_order_mismatch() -> None:
    source = HEAD + "if rank == 0:\n    dist.broadcast(a, 0)\nelse:\n    dist.all_reduce(a)\n"
    assert lines_of("collective-order-mismatch", train=source) == [4, 6]


def test_an_ignore_comment_waives_its_line() -> None:
    assert (
        found(
            train=HEAD + "if rank == 0:\n    dist.barrier()  # trainprobe:"
            " ignore[rank-conditional-collective]\n"
        )
        == []
    )
    assert found(train=HEAD + "if rank == 0:\n    # trainprobe: ignore\n    dist.barrier()\n") == []
    assert (
        found(
            train=HEAD + "if rank == 0:\n    dist.barrier()  # trainprobe: ignore[file-lock-held]\n"
        )
        != []
    )
