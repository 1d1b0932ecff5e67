"""What is left of a job that has failed: how its ranks ended, its error files, what it printed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.logs.finding import find_inputs
from trainprobe.logs.gathering import gather
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import LIVE_CELL
from trainprobe.model.progress import Silence
from trainprobe.model.request import ExplainRequest
from trainprobe.model.subjects import Subject

if TYPE_CHECKING:
    from trainprobe.case import Case
    from trainprobe.collect.members import Member
    from trainprobe.model.evidence import Ended
    from trainprobe.targets.jobs import LiveJob

MOST_COPIED = 64 * 2**20


@dataclass(frozen=True)
class OutputFile:
    """A file that the job's output goes to, and its size when the job began."""

    path: str
    before: int


def output_files(streams: Sequence[int] = (1, 2)) -> list[OutputFile]:
    """The files behind our own stdout and stderr, which the job shares; [] for terminals and
    pipes, of which nothing is kept.
    """
    found: dict[tuple[int, int], OutputFile] = {}
    for fd in streams:
        with contextlib.suppress(OSError):
            about = os.fstat(fd)
            path = os.readlink(f"/proc/self/fd/{fd}")
            if stat.S_ISREG(about.st_mode) and os.path.samestat(about, os.stat(path)):
                found.setdefault((about.st_dev, about.st_ino), OutputFile(path, about.st_size))
    return list(found.values())


def record_end(
    case: Case,
    job: LiveJob | None,
    endings: Sequence[tuple[Member, Ended]],
    outputs: Sequence[OutputFile],
    folder: str,
) -> bool:
    """Record all of it; False where nothing is left to judge."""
    if job is not None:
        data = {**job.as_data(), "cell": LIVE_CELL}
        case.add(
            "job", subject=Subject("job", host=job.host), cell=LIVE_CELL, source="/proc", data=data
        )
        for member, ended in endings:
            case.add(
                "rank.ended",
                subject=member.subject,
                cell=LIVE_CELL,
                source="pidfd",
                data=to_json(ended),
            )
    paths = [path for one in outputs if (path := _of_this_run(one, folder))]
    paths += [path for name in ("error.json", "flight") if (path := _present(folder, name))]
    if not paths:
        return bool(endings)
    asked = ExplainRequest(paths=tuple(paths), case=case.folder)
    try:
        gather(case, asked, find_inputs(paths), Silence())
    except UsageError:  # an empty log, or nothing in it that anybody knows
        return bool(endings)
    return True


def _present(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return path if os.listdir(path) else ""
    return path if os.path.exists(path) else ""


def _of_this_run(output: OutputFile, folder: str) -> str:
    """The file itself, or a copy of the part that this job wrote where older runs stand before
    it.
    """
    try:
        size = os.stat(output.path).st_size
        if size == 0:
            return ""
        if not 0 < output.before <= size:
            return output.path
        copy = os.path.join(folder, f"output-{os.path.basename(output.path)}")
        with open(output.path, "rb") as whole, open(copy, "wb") as part:
            whole.seek(max(output.before, size - MOST_COPIED))
            part.write(whole.read(MOST_COPIED))
        return copy
    except OSError:
        return ""
