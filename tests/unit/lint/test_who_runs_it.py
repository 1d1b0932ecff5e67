"""What only some ranks make, what a class below replaces, what no caller asks for, and what comes
only later are no findings; what all ranks come to is one, by whatever way.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.unit.lint.reading_sources import program_of
from trainprobe.lint.engine import findings_of
from trainprobe.lint.model import SHOWN_FROM

DIST = "import os\nimport torch\nimport torch.distributed as dist\n"
WRITER = """
class Writer:
    def save(self, model):
        torch.save(model.state_dict(), "out/model.pt")


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    {made}
    for epoch in range(3):
        {used}


main()
"""
HELD = """
class Writer:
    def save(self, model):
        torch.save(model.state_dict(), "out/model.pt")


class Trainer:
    def __init__(self):
        dist.init_process_group("nccl")
        self.writer = None
        {made}

    def run(self, model):
        for epoch in range(3):
            if self.writer is not None:
                self.writer.save(model)


if __name__ == "__main__":
    Trainer().run(build())
"""
BASE = """
class Base:
    def save(self, folder):
        torch.save(self.state_dict(), os.path.join(folder, "model.pt"))

    def finish(self):
        self.save("out")


class Parallel(Base):
    def save(self, folder):
        torch.save(self.state_dict(), os.path.join(folder, f"model.{{dist.get_rank()}}.pt"))


def main():
    dist.init_process_group("nccl")
    {made}().finish()


main()
"""
MEETS = """
class Base:
    def save(self):
        dist.barrier()

    def finish(self):
        if dist.get_rank() == 0:
            self.save()


class Own(Base):
    def save(self):
        {own}


Own().finish()
"""
SAVES = """
def save(model):
    {first}
    torch.save(model.state_dict(), "out/model.pt")


def main():
    dist.init_process_group("nccl")
    save(build())


main()
"""
DDP = """
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet18


{around}
def evaluate(model):
    for rows in loader:
        model(rows)


def main():
    dist.init_process_group("nccl")
    model = DistributedDataParallel(resnet18())
    for epoch in range(3):
        model(rows).backward()
        if dist.get_rank() == 0:
            evaluate(model)
        {after}


main()
"""
EITHER = """
def write(rows, whole):
    if not whole:
        dist.barrier()
        return
    dist.barrier()


def main(args):
    if dist.get_rank() == 0:
        write(args, bool(args.whole))
"""
SAMPLED = """
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler


def load(rows, distributed=False, shuffle=True):
    sampler = {sampler}
    return DataLoader(rows, sampler=sampler)


def main():
    dist.init_process_group("nccl")
    loader = load(rows{given})
    for epoch in range(3):
        for batch in loader:
            step(batch)
"""
CHOICE = "DistributedSampler(rows) if distributed else None"
CLASSES = "(RandomSampler if len(rows) < 2 else DistributedSampler)"
ROWS = """
import h5py
from torch.utils.data import Dataset


class Rows(Dataset):
    def __init__(self, path):
        self.file = None
        {first}

    def open(self):
        file = h5py.File("rows.h5")
        self.file = {opened}

    def __len__(self):
        self.open()
        number = len(self.file)
        {last}
        return number

    def __getitem__(self, at):
        return self.file[at]
"""
DEVICE = """
def main(args):
    device = "cpu"
    if torch.cuda.is_available():
        device = "cuda"
    {mps}
    dist.init_process_group("gloo")
    build().to(device)
"""
WORKERS = """
from torch.utils.data import DataLoader


def load(rows, number=64):
    return DataLoader(rows, num_workers={number})


def main(args):
    dist.init_process_group("nccl")
    load(rows{given})
"""
SAVE, MEET, EPOCH = "save-by-all-ranks", "rank-conditional-collective", "missing-set-epoch"
HANDLE, MANY, MPS = "open-handle-dataset", "too-many-workers", "mps-hazard"
CASES = [
    (SAVE, WRITER.format(made="writer = Writer()", used="writer.save(m)"), [True]),
    (
        SAVE,
        WRITER.format(
            made="writer = Writer() if rank == 0 else None", used="if writer: writer.save(m)"
        ),
        [],
    ),
    (
        SAVE,
        WRITER.format(
            made="hooks = [Writer()] if rank == 0 else []", used="for each in hooks: each.save(m)"
        ),
        [],
    ),
    (SAVE, HELD.format(made="self.writer = Writer()"), [True]),
    (SAVE, HELD.format(made="if dist.get_rank() == 0: self.writer = Writer()"), []),
    (SAVE, BASE.format(made="Base"), [True]),
    (SAVE, BASE.format(made="Parallel"), [False]),
    (MEET, MEETS.format(own="print('saved')"), [False]),
    (MEET, MEETS.format(own="dist.barrier()"), [True]),
    (SAVE, SAVES.format(first="pass"), [True]),
    (SAVE, SAVES.format(first="if dist.get_world_size() != 1: raise RuntimeError"), []),
    (SAVE, SAVES.format(first="if dist.get_world_size() < 2: raise RuntimeError"), [True]),
    (SAVE, SAVES.format(first="rows.save_to_disk('out/rows')"), [True, True]),
    (MEET, DDP.format(around="", after="pass"), [True]),
    (MEET, DDP.format(around="@torch.no_grad()", after="pass"), [False]),
    (MEET, DDP.format(around="@torch.no_grad()", after="dist.barrier()"), [True]),
    (MEET, DDP.format(around="@torch.no_grad()", after="pass") + "evaluate(plain())", [False]),
    (MEET, DDP.format(around="", after="pass") + "evaluate(plain())", [True]),
    (MEET, EITHER, [True]),
    (EPOCH, SAMPLED.format(sampler=CHOICE, given=""), []),
    (EPOCH, SAMPLED.format(sampler=CHOICE, given=", True"), [True]),
    (
        EPOCH,
        SAMPLED.format(sampler="DistributedSampler(rows, shuffle=shuffle)", given=", **opts"),
        [True],
    ),
    (
        EPOCH,
        SAMPLED.format(
            sampler="DistributedSampler(rows, shuffle=shuffle)", given=", shuffle=False"
        ),
        [],
    ),
    (EPOCH, SAMPLED.format(sampler=f"0; kind = {CLASSES}; s = kind(rows)", given=""), [True]),
    (HANDLE, ROWS.format(first="self.file = h5py.File(path)", opened="0", last="pass"), [True]),
    (
        HANDLE,
        ROWS.format(first="self.file = h5py.File(path); self.file.close()", opened="0", last=""),
        [],
    ),
    (HANDLE, ROWS.format(first="pass", opened="file['rows']", last="pass"), [True]),
    (HANDLE, ROWS.format(first="pass", opened="file", last="self.file.close()"), []),
    (MPS, DEVICE.format(mps="device = 'mps'").replace('device = "c', 'other = "c'), [True]),
    (MPS, DEVICE.format(mps="if args.mps: device = 'mps'"), []),
    (MANY, WORKERS.format(number="number", given=""), [True]),
    (MANY, WORKERS.format(number="number", given=", args.workers"), []),
    (MANY, WORKERS.format(number="os.cpu_count()", given=""), [True]),
    (MANY, WORKERS.format(number="os.cpu_count() if not args.is_ddp else 0", given=""), []),
]


@pytest.mark.parametrize(("rule", "text", "is_shown"), CASES)
def test_cases(rule: str, text: str, is_shown: list[bool]) -> None:
    """Whether each finding of a rule is shown by default."""
    found = findings_of(program_of(a=DIST + textwrap.dedent(text)), hints=True)[0]
    assert [each.confidence >= SHOWN_FROM for each in found if each.rule == rule] == is_shown


def test_a_model_is_wrapped_from_where_it_is() -> None:
    text = DDP.format(around="", after="pass").replace("    for", "    {}\n    for", 1)
    early = "if dist.get_rank() == 0: model(rows)"
    at = text.index("    model = Distributed")
    before = text[:at] + f"    model = resnet18()\n    {early}\n" + text[at:]
    for source, lines in ((text.format(early), 2), (before.format("pass"), 1)):
        found = findings_of(program_of(a=DIST + source))[0]
        assert len([each for each in found if each.rule == MEET]) == lines


def test_a_type_of_what_is_given_leaves_open_who_comes() -> None:
    text = """
    import os
    from torch.utils.data import DataLoader

    def measure(files):
        if {test}:
            files = DataLoader(files, num_workers=os.cpu_count())
        return files

    def main():
        dist.init_process_group("nccl")
        measure(rows)
    """
    for test, is_shown in (("isinstance(files, list)", False), ("len(files) > 3", True)):
        source = DIST + textwrap.dedent(text).format(test=test)
        found = findings_of(program_of(a=source), hints=True)[0]
        assert [one.confidence >= SHOWN_FROM for one in found if one.rule == MANY] == [is_shown]
