"""How a cell came out, from how its processes ended and what they answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trainprobe.model.evidence import Ended
from trainprobe.model.ranks import name_ranks
from trainprobe.system.child import signal_name

Outcome = Literal["passed", "failed", "timed_out", "crashed", "skipped", "not_measured"]


@dataclass(frozen=True)
class Result:
    """The answer of a cell. `ranks` are those that did not pass; `more` goes into the rung's
    evidence as it is.

    `tells_all` is true when more ranks could not make it clearer, so that larger sizes need not be
    tried.
    """

    outcome: Outcome
    says: str = ""
    ranks: tuple[int, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    tells_all: bool = False

    @property
    def reason(self) -> str:
        """Why it came out so, or why the cell was not run."""
        return self.says or str(self.more.get("skipped_because", ""))


def skipped(unmet: str, because: str, more: Mapping[str, Any] | None = None) -> Result:
    """The result of a cell that is not run."""
    return Result("skipped", "", (), {**(more or {}), "unmet": unmet, "skipped_because": because})


@dataclass(frozen=True)
class Answered:
    """One process of a probe: its answer (empty for none) and its end. `rank` is None for a
    probe of the host.
    """

    rank: int | None
    answer: str
    says: str
    ended: Ended
    open_phase: str = ""


def of_probe(answered: Sequence[Answered], deadline_s: float) -> Result:
    """All yes: passed. Any no: failed. An answer is missing: timed_out if we ended it at its
    deadline, crashed otherwise.
    """
    missing = [item for item in answered if not item.answer]
    refused = [item for item in answered if item.answer == "no"]
    unable = [item for item in answered if item.answer == "cannot"]
    # A rank that we stopped because another one failed owes no answer.
    owing = [item for item in missing if not item.ended.by_us]
    late = [item for item in missing if item.ended.by_us]
    if refused:
        return Result("failed", _sentence(refused[0]), _ranks(refused))
    if owing:
        says = f"{_who(owing)} {how_ended(owing[0].ended)} without an answer{_phase(owing[0])}"
        return Result("crashed", says, _ranks(owing))
    if unable:
        return Result("not_measured", _sentence(unable[0]), _ranks(unable))
    if late:
        says = f"{_who(late)} gave no answer within {deadline_s:g} s{_phase(late[0])}"
        return Result("timed_out", says, _ranks(late))
    return Result("passed", answered[0].says if answered else "")


def how_ended(ended: Ended) -> str:
    """Return the end as a verb phrase that follows a subject."""
    if ended.how == "oom_killed":
        return "was killed because memory ran out"
    if ended.how == "signalled" and ended.signal is not None:
        return f"was ended by {signal_name(ended.signal)}"
    if ended.how == "not_started":
        return f"could not be started ({ended.reason})"
    if ended.how == "unkillable":
        return f"cannot be ended ({ended.reason})"
    if ended.how == "exited" and ended.code is not None:
        return f"ended with exit code {ended.code}"
    return "ended, but its exit status is not known"


def failed(ended: Ended | None) -> bool:
    """True for an abnormal end that the tool did not cause."""
    return (
        ended is not None
        and not ended.by_us
        and not (ended.how == "exited" and ended.code in (0, None))
    )


def of_script(
    endings: Mapping[int, Ended], launcher: Ended | None, *, command: bool
) -> Result | None:
    """Judge by the ends of the ranks alone; None when nothing ended abnormally."""
    bad = {rank: ended for rank, ended in sorted(endings.items()) if failed(ended)}
    if command and len(bad) > 1:
        # A launcher sends SIGTERM to the others once one has failed: those did not fail themselves.
        own = {rank: ended for rank, ended in bad.items() if ended.signal != 15}
        bad = own or bad
    if bad:
        first = min(bad, key=lambda rank: (bad[rank].at or 0.0, rank))
        return Result("crashed", f"rank {first} {how_ended(bad[first])}", tuple(bad))
    if failed(launcher) and launcher is not None:
        return Result("crashed", f"the command {how_ended(launcher)}")
    return None


def _ranks(some: Sequence[Answered]) -> tuple[int, ...]:
    return tuple(sorted(item.rank for item in some if item.rank is not None))


def _sentence(answered: Answered) -> str:
    return answered.says if answered.rank is None else f"rank {answered.rank}: {answered.says}"


def _who(some: Sequence[Answered]) -> str:
    return name_ranks(_ranks(some), "the probe")


def _phase(answered: Answered) -> str:
    return f", in phase {answered.open_phase}" if answered.open_phase else ""
