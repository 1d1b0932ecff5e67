"""Concludes from the tries, in whatever order and number they were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from trainprobe.isolation import scale
from trainprobe.isolation.ledger import Ledger, Pair, blamed, ledger_of, open_pairs
from trainprobe.isolation.trials import (
    ARMS,
    BELOW,
    LinkFault,
    NodeFault,
    Shared,
    Try,
    Verdict,
    telling,
)
from trainprobe.model.ranks import and_list

LEAST_ACROSS = 3  # failing pairs between two camps before they are called camps


def conclude(
    history: Iterable[Try], nodes: Sequence[str] = (), left: Sequence[str] = ()
) -> Verdict:
    """Return which nodes and links are at fault; `nodes` gives the order, by default that of the
    tries. No history makes it raise.
    """
    tries = list(history)
    order = tuple(dict.fromkeys([*nodes, *(name for trial in tries for name in trial.members)]))
    rounds = len({trial.round for trial in tries})
    found = Verdict(tried=len(tries), rounds=rounds, left=tuple(left))
    for arm in ARMS:
        rails = {trial.rail for trial in tries if trial.arm == arm}
        for rail in sorted(rails, key=lambda rail: -1 if rail is None else rail):
            found = _of_arm(found, tries, order, arm, rail)
    found = replace(found, sizes=tuple(fault for arm in ARMS for fault in scale.found(tries, arm)))
    unmeasured = [trial for trial in tries if trial.outcome == "not_measured"]
    measured = {node.host for node in found.nodes}
    measured.update(
        name for trial in tries if trial.outcome != "not_measured" for name in trial.members
    )
    missing = [name for name in order if name not in measured]
    if tries and missing:
        reasons = (trial.says for trial in unmeasured if {*trial.members} & {*missing})
        reason = next(filter(None, reasons), "")
        sentence = f"no try of {_and(missing)} gave a result"
        sentence += f" ({reason[:300]})" if reason else ""
        found = replace(found, left=tuple(dict.fromkeys((*found.left, sentence))))
    return found


def _of_arm(
    found: Verdict, tries: Sequence[Try], order: Sequence[str], arm: str, rail: int | None
) -> Verdict:
    books = ledger_of(tries, order, arm, rail)
    if not books.tries:
        return found
    shared = _shared(books, arm)
    if shared is not None:
        below = (trial for trial in tries if trial.arm == BELOW.get(arm))
        if any(trial.outcome == "passed" for trial in below):
            shared = replace(shared, how="gloo-only" if arm == "gloo" else "fabric")
        return replace(found, shared=(*found.shared, shared))
    named = blamed(books)
    known = {node.host for node in found.nodes}
    hosts = [
        _node(books, tries, name, partners, arm)
        for name, partners in named.items()
        if name not in known
    ]
    if rail is not None:
        rails = (*found.rails, *((rail, node.host) for node in hosts))
        return replace(found, nodes=(*found.nodes, *hosts), rails=rails)
    links, once = _links(books, tries, named.keys(), arm)
    for link in links:
        misled = _misled(link, books.failed.get(frozenset((link.a, link.b)), ()))
        hosts += [misled] if misled is not None else []
    at_fault = {node.host for node in hosts}
    known_links = {frozenset((link.a, link.b)) for link in found.links}
    links = [
        link
        for link in links
        if not {link.a, link.b} & at_fault and frozenset((link.a, link.b)) not in known_links
    ]
    return replace(
        found, nodes=(*found.nodes, *hosts), links=(*found.links, *links), once=(*found.once, *once)
    )


def _node(
    books: Ledger, tries: Sequence[Try], name: str, partners: Sequence[str], arm: str
) -> NodeFault:
    shown = [trial for other in partners for trial in books.failed[frozenset((name, other))]]
    if partners:
        how = telling([trial.how for trial in shown])
        says = f"{name} fails with {_and(partners)}, who are good with others"
    else:
        shown = books.alone.get(name, [])
        how, says = "silent", f"{name} gave no sign of life in {len(shown)} tries"
    how = _by_control(tries, {name}, arm, how)
    return NodeFault(name, how, _with_reason(says, shown), _ids(shown), arm)


def _links(
    books: Ledger, tries: Sequence[Try], named: AbstractSet[str], arm: str
) -> tuple[list[LinkFault], list[tuple[str, ...]]]:
    links: list[LinkFault] = []
    once: list[tuple[str, ...]] = []
    for pair in open_pairs(books, named):
        shown = books.failed.get(pair, [])
        a, b = (name for name in books.nodes if name in pair)
        if len(shown) < 2 and books.passes(a, b):
            once.append((a, b))
            continue
        if not shown:
            shown = [trial for trial in books.groups if pair <= set(trial.members)]
        certain = (
            all(_good_end(books, end, other, named) for end, other in ((a, b), (b, a)))
            and len(books.failed.get(pair, [])) >= 2
        )
        how = _by_control(tries, set(pair), arm, telling([trial.how for trial in shown]))
        direction = _direction(shown)
        way = f" from {direction[0]} to {direction[1]}" if direction else ""
        says = f"{a} and {b} fail with each other{way}"
        both_good = ", and both are good with others"
        says += both_good if certain else ": one of them, or what is between them"
        says += "" if len(shown) > 1 else "; it was not tried again"
        says = _with_reason(says, shown)
        links.append(LinkFault(a, b, direction, how, says, _ids(shown), arm, certain))
    return links, once


def _misled(link: LinkFault, shown: Sequence[Try]) -> NodeFault | None:
    """Of two good nodes the one that has a wrong address for the other, whom others reach: the link
    itself is good.
    """
    ways = [
        {(link.a, link.b) for link in trial.links if link.how == "wrong-address"} for trial in shown
    ]
    always = set.intersection(*ways) if ways else set()
    if not link.certain or len(always) != 1:
        return None
    ((host, other),) = always
    says = _with_reason(f"{host} has a wrong address for {other}, whom others reach", shown)
    return NodeFault(host, "wrong-address", says, link.tries, link.arm)


def _good_end(books: Ledger, end: str, other: str, named: AbstractSet[str]) -> bool:
    others = books.partners.get(end, set()) - {other} - named
    return sum(books.passes(end, third) for third in others) >= 2


def _direction(shown: Sequence[Try]) -> tuple[str, ...]:
    """The only direction that failed in every try, where the other was seen to work."""
    ways: list[AbstractSet[tuple[str, str]]] = []
    for trial in shown:
        bad = {(link.a, link.b) for link in trial.links if link.how}
        if len(trial.links) != 2 or len(bad) != 1:
            return ()
        ways.append(bad)
    same = set.intersection(*map(set, ways)) if ways else set()
    return next(iter(same)) if len(same) == 1 else ()


def _by_control(tries: Sequence[Try], members: AbstractSet[str], arm: str, how: str) -> str:
    """Where the arm below passes for the same nodes, the fault lies above it."""
    below = [
        trial
        for trial in tries
        if trial.arm == BELOW.get(arm) and trial.phase == "pairs" and members <= set(trial.members)
    ]
    if not below or not all(trial.outcome == "passed" for trial in below):
        return how
    return "fabric" if arm == "nccl" else how if how == "slow" else "gloo-only"


def _shared(books: Ledger, arm: str) -> Shared | None:
    camps = camps_of(books)
    if camps:
        shown = [
            trial
            for pair, tries in books.failed.items()
            if len({_camp(camps, name) for name in pair}) > 1
            for trial in tries
        ]
        says = f"{' and '.join(map(_and, camps))} pass among themselves and never across"
        how = telling([trial.how for trial in shown])
        return Shared(books.nodes, how, says, _ids(shown), camps, arm)
    failing = [trial for tries in (*books.failed.values(), books.groups) for trial in tries]
    threes = {name for trial in books.groups for name in trial.members}
    met = {name for name in books.nodes if name in books.against or name in threes}
    few = len(met) < 3 or len(books.failed) + len(books.groups) < 2
    if books.passed or few or not _all_rotated(books, met):
        return None
    hosts, how = (
        tuple(filter(met.__contains__, books.nodes)),
        telling([each.how for each in failing]),
    )
    says = "no pair of nodes passes, with any partner"
    return Shared(hosts, how, says, _ids(failing), (), arm)


def _all_rotated(books: Ledger, met: AbstractSet[str]) -> bool:
    """Whether every node has had two partners, or a group of three and a pair."""
    threes = {name for trial in books.groups for name in trial.members}
    return all(len(books.against.get(name, ())) + (name in threes) >= 2 for name in met)


def camps_of(books: Ledger) -> tuple[tuple[str, ...], ...]:
    """Sets of two nodes or more that pass among themselves, where several pairs across were
    tried and all failed.
    """
    if len(books.failed) < 2:
        return ()
    camps = [set(names) for names in _parted(books).values()]
    of = {name: place for place, camp in enumerate(camps) for name in camp}
    if len(camps) < 2:
        return ()
    across = [pair for pair in books.failed if len({of[name] for name in pair if name in of}) > 1]
    fails = sum(len(books.failed[pair]) for pair in across)
    if fails < LEAST_ACROSS or len(across) < 2 or not _covers(across, camps):
        return ()
    places = {name: place for place, name in enumerate(books.nodes)}
    return tuple(tuple(sorted(camp, key=places.__getitem__)) for camp in camps)


def _parted(books: Ledger) -> dict[str, list[str]]:
    """Nodes that pass with each other, directly or over others, by the first of each camp."""
    found: dict[str, list[str]] = {}
    placed: set[str] = set()
    for name in books.nodes:
        if name in placed or books.dead(name):
            continue
        placed.add(name)
        found[name] = camp = [name]
        for member in camp:  # grows during the loop
            fresh = [other for other in books.partners[member] if other not in placed]
            placed.update(fresh)
            camp += fresh
    return found


def _covers(across: Sequence[Pair], camps: Sequence[AbstractSet[str]]) -> bool:
    """Whether two members of each camp were tried with others: a single one may be at fault."""
    return all(
        len({name for pair in across for name in pair if name in camp}) >= 2 for camp in camps
    )


def _camp(camps: Sequence[AbstractSet[str] | tuple[str, ...]], name: str) -> int | None:
    return next((place for place, camp in enumerate(camps) if name in camp), None)


def _with_reason(says: str, shown: Sequence[Try]) -> str:
    reason = next((trial.says for trial in shown if trial.says), "")
    return f"{says} ({reason[:300]})" if reason else says


def _ids(tries: Iterable[Try]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(trial.id for trial in tries if trial.id))


def _and(names: Sequence[str]) -> str:
    names = [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else list(names)
    return and_list(names)
