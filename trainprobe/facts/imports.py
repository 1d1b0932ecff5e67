"""How each import fared, alone and together with the other ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainprobe.facts.frame_rows import frames_of
from trainprobe.facts.probe_results import events_of
from trainprobe.model import fields
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.stacks.frames import Frame


@dataclass(frozen=True)
class ImportTried(Fact):
    """`how` is alone (a fresh process), whole (all modules in one) or together (all ranks at once).
    `outcome` is passed, failed, timed_out, crashed, oom_killed or not_measured.

    `frames` are where it stood or failed, outermost first. `growth_bytes` is by how much the
    process grew, `oom_rise` by how much the cgroup's count of out-of-memory kills did.
    `private_bytes` is the peak without pages of files, which every further rank needs again;
    `build_bytes` what the compilers below it held at most, and `compilers` how many of them there
    were at once. `lock_wait_s` are seconds in the wait for lock files, `lock_paths` which ones.
    `threads_by` says which modules left how many threads running, `cuda_by` which one opened a GPU.
    `guarded` are the modules that the script imports under a lock, and that were imported so here.
    """

    module: str = ""
    how: str = "alone"
    outcome: str = "not_measured"
    took_s: float | None = None
    rss_bytes: int | None = None
    threads: int | None = None
    fds: int | None = None
    touched_cuda: bool | None = None
    error_type: str = ""
    error: str = ""
    frames: tuple[Frame, ...] = ()
    signal: int | None = None
    exit_code: int | None = None
    oom_rise: int | None = None
    growth_bytes: int | None = None
    peak_bytes: int | None = None
    private_bytes: int | None = None
    compilers: int = 0
    build_bytes: int = 0
    lock_wait_s: float = 0.0
    lock_paths: tuple[str, ...] = ()
    threads_by: Mapping[str, int] = field(default_factory=dict)
    cuda_by: str = ""
    guarded: tuple[str, ...] = ()


OUTCOMES = ("passed", "failed", "timed_out", "crashed", "oom_killed", "not_measured")


def parse_imports(record: Evidence) -> list[Fact]:
    """`note` and `fail` events with name=import. A rank that imported together with the others
    stands in the event.
    """
    rows = [
        event
        for event in events_of(record)
        if event["event"] in ("note", "fail") and event.get("name") == "import"
    ]

    def tried(row: Mapping[str, Any]) -> Fact:
        module, outcome = fields.text(row, "module"), row.get("outcome")
        if not module or outcome not in OUTCOMES:
            raise fields.UnreadableError("an import without its module or outcome")
        rank = fields.whole(row, "rank")
        return ImportTried(
            evidence=(record.id,),
            cell=record.cell,
            rank=record.subject.rank if rank is None else rank,
            module=module,
            how=fields.text(row, "how") or "alone",
            outcome=str(outcome),
            took_s=fields.number(row, "took_s"),
            rss_bytes=fields.whole(row, "rss_bytes"),
            threads=fields.whole(row, "threads"),
            fds=fields.whole(row, "fds"),
            touched_cuda=fields.flag(row, "touched_cuda"),
            error_type=fields.text(row, "error_type"),
            error=fields.text(row, "error", cap=4000),
            frames=frames_of(fields.items(row, "frames")),
            signal=fields.whole(row, "signal"),
            exit_code=fields.whole(row, "exit_code"),
            oom_rise=fields.whole(row, "cgroup_oom_rise"),
            growth_bytes=fields.whole(row, "growth_bytes"),
            peak_bytes=fields.whole(row, "peak_bytes"),
            private_bytes=fields.whole(row, "private_bytes"),
            compilers=fields.whole(row, "compilers") or 0,
            build_bytes=fields.whole(row, "build_bytes") or 0,
            lock_wait_s=fields.number(row, "lock_wait_s") or 0.0,
            lock_paths=fields.texts(row, "lock_paths"),
            threads_by={
                name: count
                for name, count in fields.part(row, "threads_by").items()
                if isinstance(count, int)
            },
            cuda_by=fields.text(row, "cuda_by"),
            guarded=fields.texts(row, "guarded"),
        )

    return fields.each(rows, tried)
