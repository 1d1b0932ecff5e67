"""Which columns the Trainer of a program took away from its data, as its witness saw it."""

from __future__ import annotations

from dataclasses import dataclass

from trainprobe.facts.probe_results import events_of, is_witness
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact

_MOST = 200  # names of one data set


@dataclass(frozen=True)
class ColumnsRemoved(Fact):
    """`removed` and `kept` are names of columns, `of` says which data set (training, evaluation).

    `by_sample` is true where each sample loses what is not kept, as it is put into a batch; what it
    held before is then not known, and `removed` is empty.
    Source: `_remove_unused_columns` and `_get_collator_with_removed_columns` of
    transformers/trainer.py.
    """

    pid: int = 0
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    of: str = ""
    by_sample: bool = False


def parse_removed_columns(record: Evidence) -> list[Fact]:
    """Notes `columns.removed` of the witness: {removed: [name] | null, kept: [name], of}."""
    found: list[Fact] = []
    for event in events_of(record):
        if is_witness(event) and event.get("name") == "columns.removed":
            removed = ColumnsRemoved(
                (record.id,),
                record.cell,
                record.subject.rank,
                pid=fields.whole(event, "pid") or 0,
                removed=fields.texts(event, "removed")[:_MOST],
                kept=fields.texts(event, "kept")[:_MOST],
                of=fields.text(event, "of"),
                by_sample=event.get("removed") is None,
            )
            found.append(removed)
    return found
