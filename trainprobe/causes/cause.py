"""What one cause is: an illness that somebody can cure, how evidence speaks for or against it, and its cure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from trainprobe.facts import Facts
from trainprobe.model.diagnosis import Fix, Weighing
from trainprobe.waits import SuspectGroup

Mode = Literal["hang", "crash", "slow", "check"]
Weigh = Callable[[Facts, SuspectGroup], Iterable[Weighing]]


def _the_suspects(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    del facts
    return group.ranks


def nobody(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    """The `ranks` of a cause that is the code's, the host's or the launch's own."""
    del facts, group
    return ()


def _no_pids(facts: Facts, group: SuspectGroup) -> tuple[int, ...]:
    del facts, group
    return ()


@dataclass(frozen=True)
class Cause:
    """One entry of the catalogue.

    `id` names the illness (`file-lock-held`), `title` is a short sentence, `means` one or two sentences for its page and
    `telling` what evidence shows it. `modes` are the kinds of suspect group for which it competes at all.
    `weigh` yields evidence points; nothing for what was not measured. `summary` says it in one sentence, subject first.
    `fixes` are ordered, cheapest and safest first. `ranks` are those that must act differently, `()` where the fault is the code's,
    the host's or the launch's own. `refines` names the less specific cause that this one stands before when both hold,
    `accounts_for` others whose signs this one brings about.
    `would_settle` is the cheapest next step that separates it from its neighbours. `wording` is a regular expression for causes that an
    exception's own text names; a cause that it refines then steps back.
    """

    id: str
    title: str
    means: str
    telling: str
    modes: tuple[Mode, ...]
    weigh: Weigh
    summary: Callable[[Facts, SuspectGroup], str]
    fixes: Callable[[Facts, SuspectGroup], tuple[Fix, ...]]
    would_settle: str
    ranks: Callable[[Facts, SuspectGroup], tuple[int, ...]] = _the_suspects
    pids: Callable[[Facts, SuspectGroup], tuple[int, ...]] = _no_pids
    refines: str = ""
    accounts_for: tuple[str, ...] = ()
    wording: str = ""
