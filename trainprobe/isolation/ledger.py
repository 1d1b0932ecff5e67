"""The books of a search: who passed and failed with whom, and who is sound beside whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations

from trainprobe.isolation.peers import compared
from trainprobe.isolation.trials import Link, Outcome, Try

Pair = frozenset[str]
PASSING = frozenset({"loss", "delay", "slow"})  # failures in which traffic passes
MIXED_FAILS = 3  # so many failures with sound partners name a node that passes at other times


@dataclass
class Ledger:
    """`passed` and `failed` count tries of pairs; `groups` are failing groups of three that tell
    no pair; `alone` counts tries in which a member never spoke.
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
        """They failed a single time and passed when they were tried again."""
        return self.fails(a, b) == 1 and self.passes(a, b) >= 1

    def dead(self, node: str) -> bool:
        """It has passed with nobody."""
        return not self.partners.get(node)

    def sound(self, node: str, beside: str, blamed: AbstractSet[str]) -> bool:
        """Good without `beside`: it has passed with another, and whatever else it failed with is
        blamed or has passed with nobody.
        """
        others = self.partners.get(node, set()) - {beside} - blamed
        return (
            bool(others)
            and not self.alone.get(node)
            and all(
                other == beside or other in blamed or self.dead(other) or self.once(node, other)
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
    """Book all tries of pairs and threes of one arm, slow ones as failures."""
    found = Ledger(tuple(nodes))
    known = set(nodes)
    chosen = [
        one
        for one in history
        if one.arm == arm
        and one.phase == "pairs"
        and one.rail == rail
        and set(one.members) <= known
        and len(set(one.members)) in (2, 3)
    ]
    for one in chosen:
        group = frozenset(one.members)
        found.groups_tried[group] = found.groups_tried.get(group, 0) + 1
    for whole in compared([part for one in chosen for part in parts_of(one)]):
        _book(found, whole)
    return found


def _book(found: Ledger, one: Try) -> None:
    for name in one.members:
        found.tries[name] = found.tries.get(name, 0) + 1
    if one.missing:
        for name in one.missing:
            found.alone.setdefault(name, []).append(one)
        return
    if one.outcome == "passed":
        for a, b in combinations(one.members, 2):
            found.passed.setdefault(frozenset((a, b)), []).append(one)
            found.partners.setdefault(a, set()).add(b)
            found.partners.setdefault(b, set()).add(a)
    elif one.bad and len(one.members) == 2:
        a, b = one.members
        found.failed.setdefault(frozenset((a, b)), []).append(one)
        found.against.setdefault(a, set()).add(b)
        found.against.setdefault(b, set()).add(a)
    elif one.bad:
        found.groups.append(one)


def parts_of(one: Try) -> list[Try]:
    """A group of three whose six directions are known is three pairs; others stay as they are."""
    if len(one.members) != 3 or one.missing:
        return [one]
    links = {(link.a, link.b): link for link in one.links}
    if any((a, b) not in links for a in one.members for b in one.members if a != b):
        return [one]
    return [_pair(one, links[a, b], links[b, a]) for a, b in combinations(one.members, 2)]


def _pair(whole: Try, there: Link, back: Link) -> Try:
    flaws = [link for link in (there, back) if link.how]
    outcome: Outcome = "failed" if flaws else "passed"
    rtts = [link.rtt_ms for link in (there, back) if link.rtt_ms is not None]
    # no throughput: three pairs at once share what a pair has for itself
    measures = {"rtt_ms": max(rtts)} if rtts else {}
    return Try(
        (there.a, there.b),
        whole.arm,
        outcome,
        whole.round,
        whole.attempt,
        whole.phase,
        flaws[0].how if flaws else "",
        flaws[0].says if flaws else "",
        (),
        (there, back),
        measures,
        whole.id,
        whole.rail,
    )


def blamed(books: Ledger) -> Mapping[str, tuple[str, ...]]:
    """Return the nodes at fault with the sound partners that show it (empty: it never spoke). Blame
    of one may clear others, so this goes on until it is stable.

    A node that passes with nobody needs two sound partners that saw the same sort of failure. One
    that passes at times needs failures with two sound partners, three in all, and
    a third partner or a pair that failed twice and passed: two bad links of a good node fail every
    time.
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
        # Where several could be blamed at once the one with most against it goes first: it may be
        # what the others failed with.
        first = max(new, key=lambda name: len(new[name]))
        found[first] = new[first]


def _alike(books: Ledger, name: str, shown: Sequence[str]) -> bool:
    """Two partners saw the same sort of failure, or three saw any: a busy host may lose a packet
    beside another's dead link.
    """
    sorts = [
        {one.how in PASSING for one in books.failed[frozenset((name, other))]} for other in shown
    ]
    return len(shown) >= 3 or any(
        sum(sort in seen for seen in sorts) >= 2 for sort in (True, False)
    )


def _at_times(books: Ledger, name: str, shown: Sequence[str]) -> bool:
    fails = sum(books.fails(name, other) for other in shown)
    both = any(books.fails(name, other) >= 2 and books.passes(name, other) for other in shown)
    return fails >= MIXED_FAILS and (len(shown) >= 3 or both)


def open_pairs(books: Ledger, named: AbstractSet[str]) -> list[Pair]:
    """Failing pairs and groups that no blamed node explains, in the order of the nodes."""
    pairs = [pair for pair in books.failed if not pair & named]
    for one in books.groups:
        if not set(one.members) & named and not all(
            books.passes(a, b) for a, b in combinations(one.members, 2)
        ):
            pairs += [
                frozenset(pair) for pair in combinations(one.members, 2) if not books.passes(*pair)
            ]
    places = {name: place for place, name in enumerate(books.nodes)}
    return sorted(set(pairs), key=lambda pair: sorted(places[name] for name in pair))
