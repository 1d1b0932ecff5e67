"""Who of a cell ended first, and who was only ended by the launcher because of it."""

from __future__ import annotations

from dataclasses import replace

from trainprobe.facts.endings import RankEnding
from trainprobe.facts.exceptions import RankException
from trainprobe.facts.fatal_signals import FatalSignal
from trainprobe.facts.log_events import LogEvent
from trainprobe.facts.progress import Progress
from trainprobe.model.facts import Fact

SAME_MOMENT_S = 0.005
SIGTERM = 15
STOPPING_SIGNALS = (SIGTERM, 9)
STOPPING_CODES = (143, 137)


def join_endings(facts: list[Fact]) -> list[Fact]:
    """Set `failed_at`, `left_by_itself`, `by_launcher`, `echo` and `order` of the endings of
    every cell.
    """
    cells: dict[str, list[RankEnding]] = {}
    for fact in facts:
        if isinstance(fact, RankEnding):
            cells.setdefault(fact.cell, []).append(fact)
    joined: list[Fact] = [fact for fact in facts if not isinstance(fact, RankEnding)]
    for cell, endings in cells.items():
        joined += _cell([fact for fact in facts if fact.cell == cell], endings)
    return joined


def _cell(facts: list[Fact], endings: list[RankEnding]) -> list[RankEnding]:
    raised: dict[int | None, RankException] = {}
    for fact in facts:
        if (
            isinstance(fact, RankException)
            and fact.role == "rank"
            and not fact.handled
            and fact.rank is not None
        ):
            known = raised.get(fact.rank)
            if known is None or (fact.at is not None and (known.at is None or fact.at < known.at)):
                raised[fact.rank] = fact
    died: dict[int | None, FatalSignal] = {
        fact.rank: fact for fact in facts if isinstance(fact, FatalSignal) and fact.rank is not None
    }
    left: dict[int | None, Progress] = {
        fact.rank: fact
        for fact in facts
        if isinstance(fact, Progress) and fact.witness and fact.exited_by_itself
    }
    timed = [_timed(ending, raised, died, left) for ending in endings]
    stopped = _stopped_pids(facts)
    has_launcher = any(ending.role == "launcher" for ending in endings)
    first = min(
        (
            ending.failed_at
            for ending in timed
            if ending.role == "rank" and ending.abnormal and ending.failed_at is not None
        ),
        default=None,
    )
    failed = min(
        (
            ending.failed_at
            for ending in timed
            if ending.abnormal and not _asked(ending) and ending.failed_at is not None
        ),
        default=None,
    )
    marked = [
        (
            replace(ending, by_launcher=True)
            if ending.rank not in raised
            and _by_launcher(ending, stopped, has_launcher, first, failed)
            else ending
        )
        for ending in timed
    ]
    return _ordered(marked)


def _timed(
    ending: RankEnding,
    raised: dict[int | None, RankException],
    died: dict[int | None, FatalSignal],
    left: dict[int | None, Progress],
) -> RankEnding:
    """The witness knows more exactly than the launcher when and how a rank ended: it may be
    stopped while it is already leaving.
    """
    if ending.role != "rank" or ending.rank is None:
        return ending
    exception, death, went = raised.get(ending.rank), died.get(ending.rank), left.get(ending.rank)
    moments = [
        moment
        for moment in (
            ending.at,
            exception.at if exception else None,
            went.exit_at if went else None,
        )
        if moment is not None
    ]
    failed_at = min(moments, default=None)
    echo = exception.echo if exception is not None else (death.echo if death is not None else False)
    if (
        went is not None
        and exception is None
        and ending.how == "signalled"
        and ending.signal in STOPPING_SIGNALS
    ):
        # It had come to its own normal end (the witness told the status) when the signal met it on
        # the way out.
        return replace(
            ending,
            how="exited",
            code=went.exit_code or 0,
            by_us=False,
            left_by_itself=True,
            failed_at=failed_at,
        )
    return replace(
        ending,
        failed_at=failed_at,
        echo=echo,
        left_by_itself=went is not None and exception is None,
    )


def _stopped_pids(facts: list[Fact]) -> set[str]:
    return {
        fact.captured["pid"]
        for fact in facts
        if isinstance(fact, LogEvent) and fact.event == "launcher-stops" and "pid" in fact.captured
    }


def _asked(ending: RankEnding) -> bool:
    """Did it end by SIGTERM, with which a launcher asks its ranks to stop?"""
    return (
        ending.role != "rank"
        or ending.signal == SIGTERM
        or (ending.how == "exited" and ending.code == 128 + SIGTERM)
    )


def _by_launcher(
    ending: RankEnding,
    stopped: set[str],
    has_launcher: bool,
    first: float | None,
    failed: float | None,
) -> bool:
    """`first` is when any rank first ended abnormally, `failed` the same of those that nobody
    asked to stop.
    """
    if ending.role != "rank" or ending.by_us or ending.left_by_itself or not has_launcher:
        return False
    if (
        not (
            ending.signal in STOPPING_SIGNALS
            or (ending.how == "exited" and ending.code in STOPPING_CODES)
        )
        or ending.how == "oom_killed"
    ):
        return False
    if stopped:  # torchrun says whom it stops
        return str(ending.pid) in stopped
    if ending.failed_at is None or first is None:
        return False
    # One that is asked to stop within the moment in which another fails is asked because of that.
    return ending.failed_at > first + SAME_MOMENT_S or (
        _asked(ending) and failed is not None and ending.failed_at > failed - SAME_MOMENT_S
    )


def _ordered(endings: list[RankEnding]) -> list[RankEnding]:
    """Places by time among the ranks that ended by themselves, or had failed before they were
    ended.
    """
    ends = sorted(
        (moment, place)
        for place, ending in enumerate(endings)
        if (moment := _moment(ending)) is not None
    )
    order: dict[int, int] = {}
    group_began, group_place = None, 0
    for count, (moment, place) in enumerate(ends):
        if group_began is None or moment - group_began > SAME_MOMENT_S:
            group_began, group_place = moment, count
        order[place] = group_place
    return [replace(ending, order=order.get(place)) for place, ending in enumerate(endings)]


def _moment(ending: RankEnding) -> float | None:
    if (
        ending.role != "rank"
        or ending.rank is None
        or ending.by_launcher
        or ending.failed_at is None
        or ending.how in ("not_run", "not_started")
    ):
        return None
    failed_before = ending.at is not None and ending.failed_at < ending.at
    return ending.failed_at if failed_before or not ending.by_us else None
