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
                "def f():\n    if rank == 0:\n        with lock:\n            dist.barrier()\n"
                "            return work()\n    work()\n    dist.barrier()"
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
            "from accelerate import Accelerator\na = Accelerator(fsdp_plugin=Plugin())\nif"
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


@pytest.mark.parametrize(
    ("save", "off", "on"),
    [
        ("def save(sync):\n    does = sync\n    if does:\n        dist.barrier()", "False", "True"),
        ("def save(sync):\n    if not sync:\n        return\n    dist.barrier()", "False", "True"),
        (
            "def save(sync):\n    if sync and dist.is_initialized():\n        dist.barrier()",
            "False",
            "True",
        ),
        ("def save(alone=False):\n    if not alone:\n        dist.barrier()", "alone=True", ""),
        ("def save(path=None):\n    if path is not None:\n        dist.barrier()", "", "'x'"),
        (
            (
                "def asks(sync):\n    return sync and dist.is_initialized()\n"
                "def save(sync):\n    if asks(sync):\n        dist.barrier()"
            ),
            "False",
            "True",
        ),
        (
            (
                "def inner(sync):\n    if sync:\n        dist.barrier()\n"
                "def save(sync):\n    wanted = sync and x\n    inner(wanted)"
            ),
            "False",
            "True",
        ),
    ],
)
def test_a_flag_is_followed_through_locals_and_guards(save: str, off: str, on: str) -> None:
    source = HEAD + save + "\nif rank == 0:\n    save({})\n"
    last = source.count("\n")

    assert lines_of(ID, train=source.format(off)) == []
    assert lines_of(ID, train=source.format(on)) == [last]


@pytest.mark.parametrize(("making", "lines"), [("Saver()", []), ("Saver(True)", [13])])
@pytest.mark.parametrize("base", ["Saver", "Plain"])
def test_a_flag_of_an_object_is_what_its_constructor_was_given(
    base: str, making: str, lines: list[int]
) -> None:
    source = (
        "class Plain:\n    def __init__(self, sync=False):\n        self.sync = sync\n"
        "    def save(self):\n        if self.sync:\n            dist.barrier()\n"
        "class Saver(Plain):\n    def __init__(self, sync=False):\n"
        "        super().__init__(sync)\n"
    )
    made = making.replace("Saver", base)
    train = f"{HEAD}{source}if rank == 0:\n    {made}.save()\n"

    assert lines_of(ID, train=train) == lines


@pytest.mark.parametrize(
    ("guard", "lines"),
    [
        ("    if rank != 0:\n        return False\n    return True", [7]),
        ("    if rank:\n        return True\n    return False", [7]),
        ("    if size == 1:\n        return False\n    return True", []),
    ],
)
def test_a_guard_function_answers_for_its_rank(guard: str, lines: list[int]) -> None:
    source = f"{HEAD}def goes():\n{guard}\nif goes():\n    dist.barrier()\n"
    assert lines_of(ID, train=source) == [line + 1 for line in lines]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("value = os.environ.get('RANK')\nif value:\n    dist.barrier()", []),
        ("if not os.environ.get('LOCAL_RANK'):\n    dist.barrier()", []),
        ("if os.environ.get('RANK') == 0:\n    dist.barrier()", []),
        ("value = int(os.environ.get('RANK', 0))\nif value:\n    dist.barrier()", [5]),
        ("if os.environ['RANK'] == '0':\n    dist.barrier()", [4]),
        ("if os.environ['RANK'] in ('0', '-1'):\n    dist.barrier()", [4]),
        ("if not int(os.environ.get('RANK') or 0):\n    dist.barrier()", [4]),
    ],
)
def test_the_environment_holds_texts(source: str, lines: list[int]) -> None:
    assert lines_of(ID, train=f"import os\nimport torch.distributed as dist\n{source}\n") == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(comm):\n    if rank == 0:\n        comm.barrier()", []),
        (
            "class A:\n    def f(self):\n        if rank == 0:\n            self.comm.barrier()",
            [],
        ),
        ("def f(fabric):\n    if rank == 0:\n        fabric.broadcast(x)", []),
        (
            (
                "import lightning\ndef f(fabric: lightning.Fabric):\n    if rank == 0:\n"
                "        fabric.broadcast(x)"
            ),
            [6],
        ),
        ("def f(fabric):\n    if rank == 0:\n        fabric.barrier('here')", [5]),
        ("from lib import utils\nif rank == 0:\n    utils.barrier()", [5]),
    ],
)
def test_the_members_of_another_communicator_are_not_all_ranks(
    source: str, lines: list[int]
) -> None:
    assert lines_of(ID, train=HEAD + source) == lines


@pytest.mark.parametrize(
    "source",
    [
        "m = FSDP(net, process_group=some)\nif rank in (0, 1):\n    m(x)",
        (
            "class A:\n    def __init__(self):\n        self.m = FSDP(net, process_group=some)\n"
            "    def f(self):\n        if rank in (0, 1):\n            self.m(x)"
        ),
        "if rank < 2:\n    checkpoint.save(x, process_group=some)",
        # one enters in the first half, the other in the second
        (
            "class Turns:\n    def __enter__(self):\n        if rank % 2 == 0:\n"
            "            dist.barrier()\n    def __exit__(self, *a):\n        if rank % 2 == 1:\n"
            "            dist.barrier()"
        ),
        # what turns it off is asked around the call
        (
            "def meet(does=True):\n    if not does:\n        return\n    dist.barrier()\n"
            "def f(args):\n    if args.alone:\n        if rank == 0:\n"
            "            meet(does=not args.alone)"
        ),
        # all give the same answer themselves
        (
            "def load(rank0):\n    if rank0:\n        dist.barrier()\n"
            "def both(rank0=False):\n    load(rank0)\nboth(True)\nboth()\nload(rank0=False)"
        ),
        # nobody has left where all meet
        (
            "def f(args):\n    if not args.each:\n        if rank != 0:\n            return\n"
            "    if args.each:\n        dist.all_reduce(x)"
        ),
        (
            "def f(args):\n    if rank != 0 and args.mode == 'one':\n        return\n"
            "    if args.mode != 'one':\n        dist.all_reduce(x)"
        ),
    ],
)
def test_those_who_meet_are_those_who_come(source: str) -> None:
    head = (
        "from torch.distributed import checkpoint\n"
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    )
    assert lines_of(ID, train=HEAD + head + source) == []


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
