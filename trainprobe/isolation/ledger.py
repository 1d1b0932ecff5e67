"""The books of a search: which nodes passed and failed with which, and which are sound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import combinations

from trainprobe.isolation.peers import compared
from trainprobe.isolation.trials import Link, Outcome, Try

Pair = frozenset[str]
PASSING = frozenset({"loss", "delay", "slow"})  # failures in which traffic passes
MIXED_FAILS = 3  # failures with sound partners that name a node which passes at other times


@dataclass
class Ledger:
    """`passed` and `failed` hold tries of pairs; `groups` are failing groups of three that show no
    pair; `alone` holds tries in which a member gave no sign of life.
    """

    nodes: tuple[str, ...]
    passed: dict[Pair, list[Try]] = field(default_factory=dict)
    failed: dict[Pair, list[Try]] = field(default_factory=dict)
    groups: list[Try] = field(default_factory=list)
    alone: dict[str, list[Try]] = field(default_factory=dict)
    partners: dict[str, set[str]] = field(default_factory=dict)  # passed with
    against: dict[str, set[str]] = field(default_factory=dict)  # failed with
    tries: dict[str, int] = field(default_factory=dict)
    groups_tried: dict[Pair, int] = field(default_factory=dict)  # whole groups, also of three

    def passes(self, a: str, b: str) -> int:
        return len(self.passed.get(frozenset((a, b)), ()))

    def fails(self, a: str, b: str) -> int:
        return len(self.failed.get(frozenset((a, b)), ()))

    def once(self, a: str, b: str) -> bool:
        """Whether they failed a single time and passed when they were tried again."""
        return self.fails(a, b) == 1 and self.passes(a, b) >= 1

    def dead(self, node: str) -> bool:
        """Whether it has passed with nobody."""
        return not self.partners.get(node)

    def sound(self, node: str, without: str, blamed: AbstractSet[str]) -> bool:
        """Whether it is good without the node `without`: it has passed with another, and every
        other node it failed with is blamed or has passed with nobody.
        """
        others = self.partners.get(node, set()) - {without} - blamed
        return (
            bool(others)
            and not self.alone.get(node)
            and all(
                other == without or other in blamed or self.dead(other) or self.once(node, other)
                for other in self.against.get(node, ())
            )
        )

    def against_sound(self, node: str, blamed: AbstractSet[str]) -> list[str]:
        """The sound partners with whom it has failed."""
        return sorted(
            other
            for other in self.against.get(node, ())
            if other not in blamed and self.sound(other, node, blamed)
        )


def ledger_of(
    history: Iterable[Try], nodes: Sequence[str], arm: str, rail: int | None = None
) -> Ledger:
    """Book all tries of pairs and threes on one arm, slow ones as failures."""
    found = Ledger(tuple(nodes))
    known = set(nodes)
    parts: list[Try] = []
    for trial in history:
        same_search = (trial.arm, trial.phase, trial.rail) == (arm, "pairs", rail)
        group = frozenset(trial.members)
        if same_search and group <= known and len(group) in (2, 3):
            found.groups_tried[group] = found.groups_tried.get(group, 0) + 1
            parts += parts_of(trial)
    for trial in compared(parts):
        _book(found, trial)
    return found


def _book(found: Ledger, trial: Try) -> None:
    for name in trial.members:
        found.tries[name] = found.tries.get(name, 0) + 1
    for name in trial.missing:
        found.alone.setdefault(name, []).append(trial)
    if trial.missing:
        return
    passed = trial.outcome == "passed"
    if trial.bad and len(trial.members) > 2:
        found.groups.append(trial)
    elif trial.bad or passed:
        tries, others = (found.passed, found.partners) if passed else (found.failed, found.against)
        for a, b in combinations(trial.members, 2):
            tries.setdefault(frozenset((a, b)), []).append(trial)
            others.setdefault(a, set()).add(b)
            others.setdefault(b, set()).add(a)


def parts_of(trial: Try) -> list[Try]:
    """Split a group of three whose six directions are known into three pairs; others stay."""
    if len(trial.members) != 3 or trial.missing:
        return [trial]
    links = {(link.a, link.b): link for link in trial.links}
    if any((a, b) not in links for a in trial.members for b in trial.members if a != b):
        return [trial]
    return [_pair(trial, links[a, b], links[b, a]) for a, b in combinations(trial.members, 2)]


def _pair(whole: Try, there: Link, back: Link) -> Try:
    flaws = [link for link in (there, back) if link.how]
    outcome: Outcome = "failed" if flaws else "passed"
    rtts = [link.rtt_ms for link in (there, back) if link.rtt_ms is not None]
    return replace(
        whole,
        members=(there.a, there.b),
        outcome=outcome,
        how=flaws[0].how if flaws else "",
        says=flaws[0].says if flaws else "",
        links=(there, back),
        # no throughput: three pairs at once share the bandwidth
        measures={"rtt_ms": max(rtts)} if rtts else {},
    )


def blamed(books: Ledger) -> Mapping[str, tuple[str, ...]]:
    """Return the nodes at fault with the sound partners that show it (none: it gave no sign of
    life). Blaming one may clear others, so this repeats until it is stable.

    A node that passes with nobody needs two sound partners that saw the same sort of failure. One
    that passes at times needs failures with two sound partners, three in total, and a third partner
    or a pair that failed twice and passed: two bad links of a good node fail every time.
    """
    found: dict[str, tuple[str, ...]] = {
        name: ()
        for name, tries in books.alone.items()
        if books.passed and len(tries) >= 2 and books.dead(name)
    }
    while True:
        new: dict[str, tuple[str, ...]] = {}
        for name in books.nodes:
            if name in found or name not in books.against:
                continue
            shown = books.against_sound(name, found.keys())
            if len(shown) >= 2 and (
                _alike(books, name, shown) if books.dead(name) else _at_times(books, name, shown)
            ):
                new[name] = tuple(shown)
        if not new:
            return found
        dead = {name: shown for name, shown in new.items() if books.dead(name)}
        if dead:
            found.update(dead)
            continue
        # Of several candidates blame the one with the most evidence first: the others may have
        # failed because of it.
        first = max(new, key=lambda name: len(new[name]))
        found[first] = new[first]


def _alike(books: Ledger, name: str, shown: Sequence[str]) -> bool:
    """Whether two partners saw the same sort of failure, or three saw any: a busy host may lose a
    packet while another link is dead.
    """
    sorts = [
        {trial.how in PASSING for trial in books.failed[frozenset((name, other))]}
        for other in shown
    ]
    return len(shown) >= 3 or any(
        sum(sort in partner for partner in sorts) >= 2 for sort in (True, False)
    )


def _at_times(books: Ledger, name: str, shown: Sequence[str]) -> bool:
    fails = sum(books.fails(name, other) for other in shown)
    both = any(books.fails(name, other) >= 2 and books.passes(name, other) for other in shown)
    return fails >= MIXED_FAILS and (len(shown) >= 3 or both)


def open_pairs(books: Ledger, named: AbstractSet[str]) -> list[Pair]:
    """Failing pairs and groups that no blamed node explains, in the order of the nodes."""
    pairs = [pair for pair in books.failed if not pair & named]
    for group in books.groups:
        if not set(group.members) & named:
            untried = (pair for pair in combinations(group.members, 2) if not books.passes(*pair))
            pairs += map(frozenset, untried)
    places = {name: place for place, name in enumerate(books.nodes)}
    return sorted(set(pairs), key=lambda pair: sorted(places[name] for name in pair))
