"""Where a program wrapped its model into torch.nn.DataParallel, as its witness saw it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainprobe.facts.frame_rows import frame_of
from trainprobe.facts.host_checks import HostCheck
from trainprobe.facts.probe_results import events_of, is_witness
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame

CHECK = "script.data-parallel"


@dataclass(frozen=True)
class DataParallelMade(Fact):
    """`devices` is over how many GPUs, 0 where there is none and the wrapper passes everything on
    (torch/nn/parallel/data_parallel.py).

    `by` is the nearest line outside of torch, `user` the nearest outside of installed packages;
    both None where they are not known.
    """

    pid: int = 0
    devices: int = 0
    by: Frame | None = None
    user: Frame | None = None

    @property
    def unasked(self) -> bool:
        """Whether a library did it and not the user's own line."""
        return self.by is not None and "site-packages" in self.by.file


def parse_data_parallel(record: Evidence) -> list[Fact]:
    """Notes `data_parallel` of the witness: {devices, by, user}, the last two {file, line,
    function}.
    """
    found: list[Fact] = []
    for event in events_of(record):
        if is_witness(event) and event.get("name") == "data_parallel":
            made = DataParallelMade(
                (record.id,),
                record.cell,
                record.subject.rank,
                pid=fields.whole(event, "pid") or 0,
                devices=fields.whole(event, "devices") or 0,
                by=_frame(event, "by"),
                user=_frame(event, "user"),
            )
            found.append(made)
    return found


def join_data_parallel(facts: list[Fact]) -> list[Fact]:
    """Without a GPU the wrapper does nothing here, and a warning says what it does elsewhere."""
    idle = next(
        (fact for fact in facts if isinstance(fact, DataParallelMade) and fact.devices == 0), None
    )
    if idle is None:
        return facts
    place = f" at {idle.user.where}" if idle.user is not None else ""
    says = (
        f"The program wraps its model into nn.DataParallel{place}: without a GPU that does nothing,"
        " and elsewhere one process spreads over all GPUs by threads."
    )
    return [
        *facts,
        HostCheck(
            idle.evidence,
            idle.cell,
            name=CHECK,
            status="warn",
            says=says,
            fix="torchrun --nproc-per-node gpu with DistributedDataParallel",
        ),
    ]


def _frame(event: Mapping[str, Any], name: str) -> Frame | None:
    row = event.get(name)
    return frame_of(row) if isinstance(row, Mapping) else None
