"""Rows of a simple cause: what it looks for, with the points, and the sentence that it reports.

    weigh=first_of(
        stated(WORDING),
        quoted(6, "CUDA was not available", HINT),
    ),
    summary=filled("torch{at} is a CPU build{quoted}", WORDING, HINT),

A `Sign` yields weighings where it finds its evidence and nothing where it does not. A cause whose
evidence hangs together in another way has a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from trainprobe.causes.phrases import short, subject
from trainprobe.causes.scene import Scene, Weighings, weighing
from trainprobe.causes.startup_failures import (
    StartupFailure,
    startup_failure,
    weigh_general,
    weigh_startup_failure,
)
from trainprobe.causes.statements import (
    Quotable,
    checked,
    first_to_fail,
    quote,
    quote_after,
    statement,
    weigh_message,
)
from trainprobe.facts import ImportTried

# NCCL's general words.
UNHANDLED_CUDA = r"unhandled cuda error|ncclUnhandledCudaError"
UNHANDLED_SYSTEM = r"unhandled system error|ncclSystemError"

Sign = Callable[[Scene], Weighings]
Finder = Callable[[Scene], Quotable | None]


def all_of(*signs: Sign) -> Sign:
    """Every sign counts."""

    def weigh(scene: Scene) -> Weighings:
        for sign in signs:
            yield from sign(scene)

    return weigh


def first_of(*signs: Sign) -> Sign:
    """Only the first sign that finds something counts."""

    def weigh(scene: Scene) -> Weighings:
        for sign in signs:
            found = tuple(sign(scene))
            if found:
                yield from found
                return

    return weigh


def confirmed(main: Sign, *others: Sign) -> Sign:
    """`others` count only beside `main`."""

    def weigh(scene: Scene) -> Weighings:
        found = tuple(main(scene))
        if found:
            yield from found
            yield from all_of(*others)(scene)

    return weigh


def stated(wording: str, *, log_points: int = 13) -> Sign:
    """A message that alone shows the cause: 26 points as last words, else `log_points`."""

    def weigh(scene: Scene) -> Weighings:
        yield from weigh_message(scene, wording, log_points=log_points)

    return weigh


def quoted(points: int, says: str, wording: str) -> Sign:
    """A message that is worth `points` wherever it stands."""

    def weigh(scene: Scene) -> Weighings:
        found = statement(scene, wording)
        if found is not None:
            yield quote(points, says, found)

    return weigh


def printed(points: int, says: str, *events: str) -> Sign:
    """The first known line of a log that shows one of `events`."""

    def weigh(scene: Scene) -> Weighings:
        for event in scene.events(*events)[:1]:
            yield quote(points, says, event)

    return weigh


def failed_at_start(
    wording: str, *shows: str, decisive: int = 26, sign: int = 13, at_start: bool = False
) -> Sign:
    """A failure of start-up or communication: see `weigh_startup_failure`."""

    def weigh(scene: Scene) -> Weighings:
        found = startup_failure(scene, wording, *shows)
        yield from weigh_startup_failure(scene, found, sure=decisive, sign=sign, at_start=at_start)

    return weigh


def general_error(general: str, says: str) -> Sign:
    """NCCL's general words, of which this cause is one of the usual reasons."""

    def weigh(scene: Scene) -> Weighings:
        yield from weigh_general(scene, general, says)

    return weigh


def import_fails(wording: str, where: str) -> Sign:
    """The message of an import that a probe tried alone."""

    def weigh(scene: Scene) -> Weighings:
        found = statement(scene, wording)
        if found is not None and isinstance(found.fact, ImportTried):
            says = f"`import {found.fact.module}` alone fails {where}: {short(found.text)}"
            yield weighing(26, "probe-outcome", says, found.fact)
            yield from first_to_fail(scene)

    return weigh


def failed_check(*names: str, beside: str | None = None) -> Sign:
    """Failed checks; with `beside`, other cells count only if that message was found."""

    def weigh(scene: Scene) -> Weighings:
        corroborates = beside is None or statement(scene, beside) is not None
        yield from checked(scene, *names, corroborates=corroborates)

    return weigh


def passed_check(points: int, name: str) -> Sign:
    """A check of the host that passed, and none of that name that failed."""

    def weigh(scene: Scene) -> Weighings:
        passed = [check for check in scene.checks(name, bad_only=False) if check.status == "ok"]
        if passed and not scene.checks(name):
            yield weighing(points, "environment-and-limits", passed[0].says.rstrip("."), *passed)

    return weigh


def found_at_start(wording: str, *shows: str) -> Callable[[Scene], StartupFailure | None]:
    """Finds the failure of start-up or communication."""
    return lambda scene: startup_failure(scene, wording, *shows)


def filled(text: str, *finders: str | Finder, limit: int = 140) -> Callable[[Scene], str]:
    """The summary `text`, in which `{subject}` is `Rank 1 on node7`, `{at}` the user's own line
    (` at train.py:88`) and `{quoted}` the first message that is found (`: the message`); the last
    two are empty where nothing is known.
    """

    def summary(scene: Scene) -> str:
        found = None
        for finder in finders:
            found = found or (
                statement(scene, finder) if isinstance(finder, str) else finder(scene)
            )
        parts = {
            "{subject}": subject(scene),
            "{at}": scene.at_own_line,
            "{quoted}": quote_after(found, limit),
        }
        result = text
        for name, value in parts.items():
            result = result.replace(name, value)
        return result

    return summary


def check_or(*names: str, otherwise: Callable[[Scene], str]) -> Callable[[Scene], str]:
    """The summary is what the first failed check says, else `otherwise`."""

    def summary(scene: Scene) -> str:
        check = scene.failed_check(*names)
        return check.says if check is not None else otherwise(scene)

    return summary
