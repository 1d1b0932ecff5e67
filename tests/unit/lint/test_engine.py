"""Names, values, ranks and flow."""

from __future__ import annotations

import ast

import pytest

from tests.unit.lint.reading_sources import program_of
from trainprobe.lint import flow, ranks
from trainprobe.lint.engine import all_rules, findings_of
from trainprobe.lint.values import UNKNOWN


def call_names(**texts: str) -> list[str]:
    program = program_of(**texts)
    module = program.modules["train"]
    return [program.dotted(module, call.func) for call in module.of(ast.Call)]


@pytest.mark.parametrize(
    "source",
    [
        "import torch.distributed as dist\ndist.barrier()",
        "from torch import distributed\ndistributed.barrier()",
        "from torch.distributed import barrier as b\nb()",
        "import torch\ntorch.distributed.barrier()",
        "import torch.distributed as dist\nsync = dist.barrier\nsync()",
        "from torch.distributed import *\nbarrier()",
        (
            "import torch.distributed as dist\nclass A:\n    sync = dist.barrier\n    def"
            " f(self):\n        self.sync()"
        ),
        (
            "try:\n    import torch.distributed as dist\nexcept ImportError:\n    dist ="
            " None\ndist.barrier()"
        ),
    ],
)
def test_a_name_is_the_same_however_it_is_imported(source: str) -> None:
    assert call_names(train=source) == ["torch.distributed.barrier"]


def test_re_exports_of_other_files_are_followed() -> None:
    texts = {
        "lib__dist": "import torch.distributed as td\nbarrier = td.barrier\n",
        "train": "from lib.dist import barrier\nbarrier()",
    }
    assert call_names(**texts) == ["torch.distributed.barrier"]


def test_instances_and_unknown_origins() -> None:
    assert call_names(
        train="from accelerate import Accelerator\na = Accelerator()\na.gather(1)"
    ) == ["accelerate.Accelerator", "accelerate.Accelerator().gather"]
    assert call_names(
        train=(
            "from accelerate import Accelerator\ndef f(a: Accelerator, b):\n    a.gather(1)\n   "
            " b.save()"
        )
    ) == ["accelerate.Accelerator().gather", "~b.save"]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("x = 8 - 1", 7),
        ("n = 4\nx = n * 2", 8),
        ("cfg = {'data': {'workers': 6}}\nx = cfg['data']['workers']", 6),
        ("cfg = {'a': 1}\nx = cfg.get('b', 3)", 3),
        ("n = 4\nn = 5\nx = n", UNKNOWN),
        ("x = max(2, 9)", 9),
        ("x = 1 / 0", UNKNOWN),
        ("x = 9 ** 9 ** 9", UNKNOWN),
        ("def f():\n    return 3\nx = f()", 3),
        (
            (
                "import argparse\np = argparse.ArgumentParser()\np.add_argument('--num-workers',"
                " default=16)\nargs = p.parse_args()\nx = args.num_workers"
            ),
            16,
        ),
        ("x = x", UNKNOWN),
    ],
)
def test_values(source: str, value: object) -> None:
    program = program_of(train=source)
    module = program.modules["train"]
    last = next(
        one
        for one in module.of(ast.Assign)
        if isinstance(one.targets[0], ast.Name) and one.targets[0].id == "x"
    )
    assert program.value(module, last.value) == value


@pytest.mark.parametrize(
    ("condition", "polarity"),
    [
        ("dist.get_rank() == 0", "main"),
        ("0 == dist.get_rank()", "main"),
        ("not dist.get_rank()", "main"),
        ("dist.get_rank() != 0", "others"),
        ("dist.get_rank() > 0", "others"),
        ("dist.get_rank() < 1", "main"),
        ("int(os.environ['LOCAL_RANK']) == 0", "main"),
        ("os.environ.get('RANK', '0') == '0'", "main"),
        ("args.local_rank in [-1, 0]", "main"),
        ("args.local_rank not in (-1, 0)", "others"),
        ("accelerator.is_main_process", "main"),
        ("not accelerator.is_local_main_process", "others"),
        ("trainer.is_global_zero and step % 10 == 0", "main"),
        ("dist.get_rank() == 3", "some"),
        ("dist.get_rank() % 8 == 0", "some"),
        ("args.local_rank != -1", None),
        ("args.local_rank is not None", None),
        ("dist.get_world_size() > 1", None),
        ("step == 0", None),
        ("__name__ == '__main__'", None),
    ],
)
def test_rank_conditions(condition: str, polarity: str | None) -> None:
    program = program_of(
        train=(
            "import os\nimport torch.distributed as dist\ndef f(args, accelerator, trainer,"
            f" step):\n    if {condition}:\n        pass"
        )
    )
    module = program.modules["train"]
    told = ranks.test(program, module, module.of(ast.If)[0].test)
    assert (told.polarity if told else None) == polarity


def test_a_rank_is_followed_through_variables_and_functions() -> None:
    lib = (
        "import torch.distributed as dist\ndef who():\n    if not dist.is_initialized():\n       "
        " return 0\n    return dist.get_rank()\n"
    )
    program = program_of(
        lib=lib,
        train=(
            "from lib import who\nclass T:\n    def __init__(self):\n        self.first = who() =="
            " 0\n    def f(self):\n        if self.first:\n            pass"
        ),
    )
    module = program.modules["train"]
    told = ranks.test(program, module, module.of(ast.If)[0].test)
    assert told is not None
    assert told.polarity == "main"


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("if rank == 0:\n        work()", ["inside"]),
        ("if rank != 0:\n        return\n    work()", ["return"]),
        ("if rank != 0:\n        raise SystemExit\n    work()", ["raise"]),
        ("if rank != 0:\n        sys.exit(0)\n    work()", ["exit"]),
        ("for i in x:\n        if rank != 0:\n            continue\n        work()", ["continue"]),
        ("for i in x:\n        if rank != 0:\n            continue\n    work()", []),
        ("rank == 0 and work()", ["inside"]),
        ("if rank == 0:\n        print()\n    work()", []),
        ("if x:\n        if rank != 0:\n            return\n    else:\n        work()", []),
        (
            (
                "try:\n        if rank != 0:\n            raise ValueError\n    except"
                " ValueError:\n        pass\n    work()"
            ),
            [],
        ),
    ],
)
def test_guards(body: str, how: list[str]) -> None:
    program = program_of(train=f"import sys\ndef f(rank, x):\n    {body}")
    module = program.modules["train"]
    work = next(
        call for call in module.of(ast.Call) if program.dotted(module, call.func) == "~work"
    )
    assert [guard.how for guard in flow.guards(program, module, work)] == how


def test_names_that_are_bound_to_each_other_many_times_are_followed_once() -> None:
    text = (
        "x0 = 1\n"
        + "".join(f"x{number} = x{number - 1}\n" * 8 for number in range(1, 13))
        + "x = x12"
    )
    program = program_of(train=text)
    module = program.modules["train"]
    last = next(
        one
        for one in module.of(ast.Assign)
        if isinstance(one.targets[0], ast.Name) and one.targets[0].id == "x"
    )
    assert program.value(module, last.value) == 1


def test_values_that_are_lists_are_no_trouble_for_any_rule() -> None:
    """Rules compare values; a list or a dictionary in a place of a number must not end them."""
    held = "[1, 2]"
    text = f"""
import os, torch, datasets
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from transformers import Trainer, TrainingArguments
def f(sync={{"a": 1}}):
    if sync:
        dist.barrier()
dist.init_process_group({held}, rank={held}, world_size={held})
torch.zeros(1, device={held}).cuda()
datasets.load_dataset("x").map(f, num_proc={held})
for x in DataLoader(DistributedSampler({held}, shuffle={held}), {held}, num_workers={held}, drop_last={held}, persistent_workers={held}, pin_memory={held}):
    x.view({held}).backward()
if dist.get_rank() == {held} or os.environ[{held}]:
    f({held})
torch.save({held}, {held})
Trainer(None, TrainingArguments({held}, remove_unused_columns={held}, dataloader_num_workers={held}), data_collator={held})
os.environ[{held}] = {held}
"""
    assert {one.rule for one in findings_of(program_of(train=text))[0]} <= {
        rule.id for rule in all_rules()
    }
