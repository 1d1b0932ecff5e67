"""`conclude()`: what tries show, whoever made them and however many they are."""

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

LEAST_ACROSS = 3  # failing pairs across two camps before they are called camps


def conclude(
    history: Iterable[Try], nodes: Sequence[str] = (), left: Sequence[str] = ()
) -> Verdict:
    """Say which nodes and links are at fault; `nodes` gives the order, by default that in which
    they were tried. Total: no history makes it raise.
    """
    tries = list(history)
    order = tuple(dict.fromkeys([*nodes, *(name for one in tries for name in one.members)]))
    found = Verdict(tried=len(tries), rounds=len({one.round for one in tries}), left=tuple(left))
    for arm in ARMS:
        for rail in sorted(
            {one.rail for one in tries if one.arm == arm},
            key=lambda rail: -1 if rail is None else rail,
        ):
            found = _of_arm(found, tries, order, arm, rail)
    found = replace(found, sizes=tuple(fault for arm in ARMS for fault in scale.found(tries, arm)))
    measured = {name for one in tries if one.outcome != "not_measured" for name in one.members} | {
        one.host for one in found.nodes
    }
    untold = [name for name in order if name not in measured]
    if tries and untold:
        seen = next(
            (
                one.says
                for one in tries
                if one.outcome == "not_measured" and one.says and set(one.members) & set(untold)
            ),
            "",
        )
        sentence = f"no try of {_and(untold)} gave a result" + (f" ({seen[:300]})" if seen else "")
        found = replace(found, left=tuple(dict.fromkeys((*found.left, sentence))))
    return found


def _of_arm(
    found: Verdict, tries: Sequence[Try], order: Sequence[str], arm: str, rail: int | None
) -> Verdict:
    books = ledger_of(tries, order, arm, rail)
    if not books.tries:
        return found
    known = {one.host for one in found.nodes}
    shared = _shared(books, arm)
    if shared is not None:
        fewer = books.nodes if arm not in BELOW else ()
        below_fine = any(one.arm == BELOW.get(arm) and one.outcome == "passed" for one in tries)
        how = (
            ("gloo-only" if arm == "gloo" else "fabric") if below_fine and not fewer else shared.how
        )
        return replace(found, shared=(*found.shared, replace(shared, how=how)))
    named = blamed(books)
    hosts = [
        _node(books, tries, name, partners, arm)
        for name, partners in named.items()
        if name not in known
    ]
    if rail is not None:
        return replace(
            found,
            nodes=(*found.nodes, *hosts),
            rails=(*found.rails, *((rail, one.host) for one in hosts)),
        )
    links, once = _links(books, tries, named.keys(), arm)
    hosts += [
        fault
        for link in links
        if (fault := _misled(link, books.failed.get(frozenset((link.a, link.b)), ()))) is not None
    ]
    links = [link for link in links if not {link.a, link.b} & {one.host for one in hosts}]
    known_links = {frozenset((one.a, one.b)) for one in found.links}
    links = [one for one in links if frozenset((one.a, one.b)) not in known_links]
    return replace(
        found, nodes=(*found.nodes, *hosts), links=(*found.links, *links), once=(*found.once, *once)
    )


def _node(
    books: Ledger, tries: Sequence[Try], name: str, partners: Sequence[str], arm: str
) -> NodeFault:
    shown = [
        one for other in partners for one in books.failed[frozenset((name, other))]
    ] or books.alone.get(name, [])
    how = "silent" if not partners else telling([one.how for one in shown])
    how = _by_control(tries, {name}, arm, how)
    with_whom = (
        f"with {_and(partners)}, who are good with others" if partners else f"in {len(shown)} tries"
    )
    says = f"{name} {'fails' if partners else 'gave no sign of life'} {with_whom}"
    return NodeFault(name, how, _and_seen(says, shown), _ids(shown), arm)


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
            shown = [one for one in books.groups if pair <= set(one.members)]
        certain = (
            all(_good_end(books, end, other, named) for end, other in ((a, b), (b, a)))
            and len(books.failed.get(pair, [])) >= 2
        )
        how = _by_control(tries, set(pair), arm, telling([one.how for one in shown]))
        direction = _direction(shown)
        way = f" from {direction[0]} to {direction[1]}" if direction else ""
        says = f"{a} and {b} fail with each other{way}"
        says += (
            ", and both are good with others"
            if certain
            else ": one of them, or what is between them"
        )
        says += "" if len(shown) > 1 else "; it was not tried again"
        links.append(
            LinkFault(a, b, direction, how, _and_seen(says, shown), _ids(shown), arm, certain)
        )
    return links, once


def _misled(link: LinkFault, shown: Sequence[Try]) -> NodeFault | None:
    """Of two good nodes the one that has a wrong address for the other, whom others reach: no
    way between them is at fault.
    """
    ways = [{(one.a, one.b) for one in each.links if one.how == "wrong-address"} for each in shown]
    always = set.intersection(*ways) if ways else set()
    if not link.certain or len(always) != 1:
        return None
    ((host, other),) = always
    return NodeFault(
        host,
        "wrong-address",
        _and_seen(f"{host} has a wrong address for {other}, whom others reach", shown),
        link.tries,
        link.arm,
    )


def _good_end(books: Ledger, end: str, other: str, named: AbstractSet[str]) -> bool:
    return (
        sum(books.passes(end, third) for third in books.partners.get(end, set()) - {other} - named)
        >= 2
    )


def _direction(shown: Sequence[Try]) -> tuple[str, ...]:
    """The one way that failed in every try, where the other was seen to work."""
    ways: list[AbstractSet[tuple[str, str]]] = []
    for one in shown:
        bad = {(link.a, link.b) for link in one.links if link.how}
        if len(one.links) != 2 or len(bad) != 1:
            return ()
        ways.append(bad)
    same = set.intersection(*map(set, ways)) if ways else set()
    return next(iter(same)) if len(same) == 1 else ()


def _by_control(tries: Sequence[Try], members: AbstractSet[str], arm: str, how: str) -> str:
    """Where the arm below passes for the same nodes, the fault lies above it."""
    below = [
        one
        for one in tries
        if arm in BELOW
        and one.arm == BELOW[arm]
        and one.phase == "pairs"
        and members <= set(one.members)
    ]
    if below and all(one.outcome == "passed" for one in below):
        return "fabric" if arm == "nccl" else how if how == "slow" else "gloo-only"
    return how


def _shared(books: Ledger, arm: str) -> Shared | None:
    camps = camps_of(books)
    if camps:
        shown = [
            one
            for pair, tries in books.failed.items()
            if len({_camp(camps, name) for name in pair}) > 1
            for one in tries
        ]
        says = (
            " and ".join(_and(camp) for camp in camps) + " pass among themselves and never across"
        )
        return Shared(
            books.nodes, telling([one.how for one in shown]), says, _ids(shown), camps, arm
        )
    failing = [one for tries in (*books.failed.values(), books.groups) for one in tries]
    met = {
        name
        for name in books.nodes
        if name in books.against or any(name in one.members for one in books.groups)
    }
    if (
        books.passed
        or len(met) < 3
        or len(books.failed) + len(books.groups) < 2
        or not _all_rotated(books, met)
    ):
        return None
    return Shared(
        tuple(name for name in books.nodes if name in met),
        telling([one.how for one in failing]),
        "no pair of nodes passes, whoever is with whom",
        _ids(failing),
        (),
        arm,
    )


def _all_rotated(books: Ledger, met: AbstractSet[str]) -> bool:
    """Everyone has had two partners, or a group of three and a pair."""
    threes = {name for one in books.groups for name in one.members}
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
    """Nodes that pass with each other, over however many others: by the first of each camp."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in books.nodes:
        if name in seen or books.dead(name):
            continue
        seen.add(name)
        found[name] = camp = [name]
        for member in camp:  # grows while it is walked
            fresh = [other for other in books.partners[member] if other not in seen]
            seen.update(fresh)
            camp += fresh
    return found


def _covers(across: Sequence[Pair], camps: Sequence[AbstractSet[str]]) -> bool:
    """Each camp was tried across by two of its members: one alone may be its own fault."""
    return all(
        len({name for pair in across for name in pair if name in camp}) >= 2 for camp in camps
    )


def _camp(camps: Sequence[AbstractSet[str] | tuple[str, ...]], name: str) -> int | None:
    return next((place for place, camp in enumerate(camps) if name in camp), None)


def _and_seen(says: str, shown: Sequence[Try]) -> str:
    seen = next((one.says for one in shown if one.says), "")
    return f"{says} ({seen[:300]})" if seen else says


def _ids(tries: Iterable[Try]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.id for one in tries if one.id))


def _and(names: Sequence[str]) -> str:
    names = [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
