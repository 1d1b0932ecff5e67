"""What to try next. The search holds no state: each round follows from all that was tried so
far, so that it can be stopped, gone on with and checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from trainprobe.isolation import scale
from trainprobe.isolation.ledger import Ledger, Pair, blamed, ledger_of, open_pairs
from trainprobe.isolation.pairing import Groups, one_idle, rotation
from trainprobe.isolation.trials import BELOW, Plan, Round, Try, Verdict
from trainprobe.isolation.verdict import camps_of, conclude

TRIES_OF_NODE = 8  # of one open node with sound partners, beyond which it stays open
TRIES_OF_PAIR = 3
LINK_ENDS = 2  # passes with others that each end of a bad link must show


def next_round(
    history: Sequence[Try], nodes: Sequence[str], plan: Plan | None = None
) -> Round | Verdict:
    """Return the groups to try next, or what all tries show where nothing is left to try. `nodes`
    are names, each once, in the order of their ranks.

    It ends for every history that is answered honestly, and after `plan.most_rounds` in any case.
    """
    asked = plan or Plan()
    if len(nodes) < 2:
        return Verdict(left=("one node has no partner",) if nodes else ("no nodes",))
    if len({one.round for one in history}) >= asked.most_rounds:
        return conclude(history, nodes, left=(f"stopped after {asked.most_rounds} rounds",))
    for rail in (None, *range(asked.rails)):
        pairs = _pairs(history, tuple(nodes), asked, rail)
        if pairs is not None:
            return pairs
    so_far = conclude(history, nodes)
    if asked.ladder and not so_far.shared:
        named = {one.host for one in so_far.nodes}
        more = scale.next_size(history, [name for name in nodes if name not in named], asked.arm)
        if more is not None:
            return more
    return so_far


def _pairs(
    history: Sequence[Try], nodes: tuple[str, ...], plan: Plan, rail: int | None
) -> Round | None:
    books = ledger_of(history, nodes, plan.arm, rail)
    why = "" if rail is None else f" on local rank {rail}"
    for repeat in range(plan.repeats):
        groups = _not_yet(books, rotation(nodes, 0), repeat + 1)
        if groups:
            return Round(
                groups, plan.arm, "every node with a neighbour" + why, rail=rail, further=repeat > 0
            )
    if not books.passed and len(books.alone) < len(nodes):
        return _another_pairing(nodes, books, plan, rail)
    if not books.passed:  # all of them were silent: that says more of whoever asked
        groups = _not_yet(books, rotation(nodes, 0), 2)
        return (
            Round(groups, plan.arm, "nobody spoke: once more" + why, rail=rail) if groups else None
        )
    named = blamed(books)
    step = _settling(books, named.keys(), plan)
    if step:
        return Round(step, plan.arm, "who failed, with partners that are good" + why, rail=rail)
    if rail is None and plan.control and plan.arm in BELOW:
        control = _control(history, books, named.keys(), plan)
        if control:
            return Round(
                control, BELOW[plan.arm], f"what fails in {plan.arm}, by {BELOW[plan.arm]} alone"
            )
    if camps_of(books):
        return None
    return _breadth(nodes, books, named.keys(), plan, rail)


def _not_yet(books: Ledger, groups: Groups, times: int) -> Groups:
    return tuple(group for group in groups if books.groups_tried.get(frozenset(group), 0) < times)


def _another_pairing(
    nodes: tuple[str, ...], books: Ledger, plan: Plan, rail: int | None
) -> Round | None:
    """Nobody passed: others together, several times over, before this is called a common cause.
    Who never spoke is left out once that is sure.
    """
    speaking = [name for name in nodes if len(books.alone.get(name, ())) < 2]
    most = (
        max(plan.rotations, 3) if len(nodes) == 3 else min(plan.rotations, max(1, len(nodes) - 1))
    )
    for turn in range(1, most + 1):
        groups = _not_yet(books, one_idle(nodes, turn), 1 if len(nodes) > 2 else 2)
        groups = tuple(group for group in groups if set(group) & set(speaking))
        if groups:
            return Round(groups, plan.arm, "no pair passed: other partners", rail=rail)
    return None


def _breadth(
    nodes: tuple[str, ...], books: Ledger, named: AbstractSet[str], plan: Plan, rail: int | None
) -> Round | None:
    """More pairs where all is settled: links that no round has tried yet."""
    left = tuple(name for name in nodes if name not in named)
    for turn in range(1, plan.breadth):
        for repeat in range(plan.repeats):
            groups = _not_yet(books, rotation(left, turn), repeat + 1)
            if groups:
                return Round(
                    groups,
                    plan.arm,
                    (
                        "every node with its other neighbour"
                        if turn == 1
                        else "pairs that have not met"
                    ),
                    rail=rail,
                    further=True,
                )
    return None


def _settling(books: Ledger, named: AbstractSet[str], plan: Plan) -> Groups:
    """One wave of tries that settle what failed: open nodes with sound partners, and failing
    pairs once more.
    """
    taken: set[str] = set()
    wave: list[tuple[str, ...]] = []
    pairs = open_pairs(books, named)
    ends = list(dict.fromkeys(name for pair in pairs for name in books.nodes if name in pair))
    ends += [
        name for name in books.nodes if books.dead(name) and name not in ends and name not in named
    ]  # its only partner never spoke
    uses: dict[str, int] = {}
    sound = [
        name
        for name in books.nodes
        if name not in named
        and not (set(books.against.get(name, ())) - named)
        and books.sound(name, "", named)
    ]
    for name in sorted(ends, key=lambda name: not books.dead(name)):
        if name in taken or not _wanted(books, name, pairs, named, plan):
            continue
        partner = _partner(books, name, sound, taken, named, uses)
        if partner:
            taken |= {name, partner}
            wave.append((name, partner))
    for pair in pairs:
        if not pair & taken and _once_more(books, pair, plan):
            taken |= pair
            wave.append(tuple(name for name in books.nodes if name in pair))
    return tuple(wave)


def _wanted(
    books: Ledger, name: str, pairs: Sequence[Pair], named: AbstractSet[str], plan: Plan
) -> bool:
    """Does another try of an open node with a sound partner tell more?"""
    shown = books.against_sound(name, named)
    tried = (
        sum(books.passes(name, other) for other in books.partners.get(name, ()))
        + sum(books.fails(name, other) for other in shown)
        + len(books.alone.get(name, ()))
    )
    if tried >= TRIES_OF_NODE:
        return False
    if books.dead(name):
        return True
    passes = sum(books.passes(name, other) for other in books.partners[name] - named)
    if len(shown) >= 2:  # it fails with some and passes with others: bad at times, or two bad links
        return True
    return passes < max(
        _ends_needed(books, pair, plan)
        for pair in [*(pair for pair in pairs if name in pair), frozenset()]
    )


def _ends_needed(books: Ledger, pair: Pair, plan: Plan) -> int:
    """How often each end of an open pair must pass with others: once to be let off, twice for a
    bad link, more where the pair fails at times only.
    """
    if len(pair) != 2:
        return 1
    fails, passes = books.fails(*pair), books.passes(*pair)
    if passes:
        return 1 + plan.again
    return LINK_ENDS if fails >= 2 else 1


def _once_more(books: Ledger, pair: Pair, plan: Plan) -> bool:
    """Repeat a failing pair when both ends are good with others: twice before a link is named,
    three times where it passed in between.
    """
    a, b = pair
    if books.dead(a) or books.dead(b):
        return False
    fails, passes = books.fails(a, b), books.passes(a, b)
    if fails + passes == 0:  # of a group of three, which failed as a whole
        return True
    if fails == 1 and passes == 0:
        return True
    return passes > 0 and fails < 2 and fails + passes < max(TRIES_OF_PAIR, 1 + plan.again)


def _partner(
    books: Ledger,
    name: str,
    sound: Sequence[str],
    taken: AbstractSet[str],
    named: AbstractSet[str],
    uses: dict[str, int],
) -> str:
    """A free partner that is good without this node: one that it has not met, and that was used
    least.
    """
    free = [other for other in sound if other != name and other not in taken]
    free = free or [
        other
        for other in books.nodes
        if other != name
        and other not in taken
        and other not in named
        and books.sound(other, name, named)
    ]
    free = [other for other in free if not books.fails(name, other) or not books.dead(name)]
    fresh = [
        other for other in free if not books.fails(name, other) and not books.passes(name, other)
    ] or [other for other in free if not books.fails(name, other)]
    if not fresh:
        return ""
    return min(fresh, key=lambda other: (uses.get(other, 0), books.tries.get(other, 0)))


def _control(history: Sequence[Try], books: Ledger, named: AbstractSet[str], plan: Plan) -> Groups:
    """The arm below for each blamed node, with a sound partner, and for each bad link."""
    below = BELOW[plan.arm]
    done = {
        name
        for one in history
        if one.arm == below and one.phase == "pairs"
        for name in one.members
        if name in named
    }
    pairs_done = {frozenset(one.members) for one in history if one.arm == below}
    return tuple(
        _control_groups(
            books,
            [name for name in books.nodes if name in named and name not in done],
            named,
            pairs_done,
        )
    )


def _control_groups(
    books: Ledger, wanting: Sequence[str], named: AbstractSet[str], done: AbstractSet[Pair]
) -> Iterator[tuple[str, ...]]:
    taken: set[str] = set()
    for name in wanting:
        partner = next(
            (
                other
                for other in books.nodes
                if other not in named and other not in taken and books.sound(other, name, named)
            ),
            "",
        )
        if partner:
            taken |= {name, partner}
            yield (name, partner)
    for pair in open_pairs(books, named):
        if (
            not pair & taken
            and pair not in done
            and not any(books.passes(a, b) for a, b in combinations(pair, 2))
        ):
            taken |= pair
            yield tuple(sorted(pair))
