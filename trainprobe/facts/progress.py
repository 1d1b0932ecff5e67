"""How far a rank came, by its own witness and by what it printed."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.model.facts import Fact


@dataclass(frozen=True)
class Progress(Fact):
    """`output_steps` is the largest step number printed, None when none was seen. `silent_s` is how long it has printed nothing.

    `loader_empty` is True when a DataLoader gave no batch at all. `exited_by_itself` is True when the interpreter came to its
    normal end. `witness` says whether the process was watched at all: without it the counts are None, which is not zero.
    """

    pid: int | None = None
    optimizer_steps: int | None = None
    batches: int | None = None
    backward_calls: int | None = None
    output_steps: int | None = None
    loader_empty: bool | None = None
    dataset_len: int | None = None
    first_output_s: float | None = None
    silent_s: float | None = None
    exited_by_itself: bool | None = None
    exit_at: float | None = None
    torch_imported: bool | None = None
    world_size: int | None = None
    witness: bool = False
