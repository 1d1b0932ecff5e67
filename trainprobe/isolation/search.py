"""What to try next. The search holds no state: each round follows from all earlier tries, so that
it can be stopped, resumed and tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from trainprobe.isolation import scale
from trainprobe.isolation.ledger import Ledger, Pair, blamed, ledger_of, open_pairs
from trainprobe.isolation.pairing import Groups, one_idle, rotation
from trainprobe.isolation.trials import BELOW, Plan, Round, Try, Verdict
from trainprobe.isolation.verdict import camps_of, conclude

TRIES_OF_NODE = 8  # of one open node with sound partners; then it stays open
TRIES_OF_PAIR = 3
LINK_ENDS = 2  # passes with others that each end of a bad link must show


def next_round(
    history: Sequence[Try], nodes: Sequence[str], plan: Plan | None = None
) -> Round | Verdict:
    """Return the groups to try next, or the verdict where nothing is left to try. `nodes` are
    names, each once, in the order of their ranks.

    It ends for every consistent history, and after `plan.most_rounds` in any case.
    """
    plan = plan or Plan()
    if len(nodes) < 2:
        return Verdict(left=("one node has no partner",) if nodes else ("no nodes",))
    if len({trial.round for trial in history}) >= plan.most_rounds:
        return conclude(history, nodes, left=(f"stopped after {plan.most_rounds} rounds",))
    for rail in (None, *range(plan.rails)):
        pairs = _pairs(history, tuple(nodes), plan, rail)
        if pairs is not None:
            return pairs
    so_far = conclude(history, nodes)
    if plan.ladder and not so_far.shared:
        named = {node.host for node in so_far.nodes}
        good = [name for name in nodes if name not in named]
        return scale.next_size(history, good, plan.arm) or so_far
    return so_far


def _pairs(
    history: Sequence[Try], nodes: tuple[str, ...], plan: Plan, rail: int | None
) -> Round | None:
    books = ledger_of(history, nodes, plan.arm, rail)
    why = "" if rail is None else f" on local rank {rail}"
    for repeat in range(plan.repeats):
        groups = _not_yet(books, rotation(nodes, 0), repeat + 1)
        if groups:
            says = f"every node with a neighbour{why}"
            return Round(groups, plan.arm, says, rail=rail, further=repeat > 0)
    if not books.passed and len(books.alone) < len(nodes):
        return _another_pairing(nodes, books, plan, rail)
    if not books.passed:  # that all are silent says more about the tool than about the nodes
        groups = _not_yet(books, rotation(nodes, 0), 2)
        says = f"no node gave a sign of life: once more{why}"
        return Round(groups, plan.arm, says, rail=rail) if groups else None
    named = blamed(books)
    step = _settling(books, named.keys(), plan)
    if step:
        return Round(step, plan.arm, f"nodes that failed, with good partners{why}", rail=rail)
    if rail is None and plan.control and plan.arm in BELOW:
        control = _control(history, books, named.keys(), plan)
        if control:
            below = BELOW[plan.arm]
            return Round(control, below, f"what fails in {plan.arm}, by {below} alone")
    if camps_of(books):
        return None
    return _breadth(nodes, books, named.keys(), plan, rail)


def _not_yet(books: Ledger, groups: Groups, times: int) -> Groups:
    return tuple(group for group in groups if books.groups_tried.get(frozenset(group), 0) < times)


def _another_pairing(
    nodes: tuple[str, ...], books: Ledger, plan: Plan, rail: int | None
) -> Round | None:
    """No pair passed: try other partners, several times, before concluding a common cause. Nodes
    that were silent twice are left out.
    """
    alive = {name for name in nodes if len(books.alone.get(name, ())) < 2}
    most = min(plan.rotations, max(1, len(nodes) - 1))
    if len(nodes) == 3:
        most = max(plan.rotations, 3)
    for turn in range(1, most + 1):
        groups = _not_yet(books, one_idle(nodes, turn), 1 if len(nodes) > 2 else 2)
        groups = tuple(group for group in groups if alive & set(group))
        if groups:
            return Round(groups, plan.arm, "no pair passed: other partners", rail=rail)
    return None


def _breadth(
    nodes: tuple[str, ...], books: Ledger, named: AbstractSet[str], plan: Plan, rail: int | None
) -> Round | None:
    """More pairs once all failures are settled: links that no round has tried yet."""
    left = tuple(name for name in nodes if name not in named)
    for turn in range(1, plan.breadth):
        for repeat in range(plan.repeats):
            groups = _not_yet(books, rotation(left, turn), repeat + 1)
            if groups:
                other = "every node with its other neighbour"
                why = other if turn == 1 else "pairs that have not met"
                return Round(groups, plan.arm, why, rail=rail, further=True)
    return None


def _settling(books: Ledger, named: AbstractSet[str], plan: Plan) -> Groups:
    """One wave of tries that settle what failed: open nodes with sound partners, and failing
    pairs once more.
    """
    taken: set[str] = set()
    wave: list[tuple[str, ...]] = []
    pairs = open_pairs(books, named)
    ends = list(dict.fromkeys(name for pair in pairs for name in books.nodes if name in pair))
    known = {*ends, *named}
    # Nodes whose only partner was silent.
    ends += [name for name in books.nodes if books.dead(name) and name not in known]
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
    """Whether another try of an open node with a sound partner shows more."""
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
    if len(shown) >= 2:  # a node that is bad at times, or two bad links
        return True
    own = [pair for pair in pairs if name in pair]
    return passes < max(_ends_needed(books, pair, plan) for pair in (*own, frozenset()))


def _ends_needed(books: Ledger, pair: Pair, plan: Plan) -> int:
    """How often each end of an open pair must pass with others: once to clear it, twice to blame
    the link, more often where the pair fails only at times.
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
    if fails <= 1 and passes == 0:  # without a failure it is part of a failing group of three
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
    """A free partner that is good without this node, preferably one that it has not met; the least
    used of them.
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
    good = [other for other in free if not books.fails(name, other)]
    fresh = [other for other in good if not books.passes(name, other)] or good
    if not fresh:
        return ""
    return min(fresh, key=lambda other: (uses.get(other, 0), books.tries.get(other, 0)))


def _control(history: Sequence[Try], books: Ledger, named: AbstractSet[str], plan: Plan) -> Groups:
    """The arm below for each blamed node, with a sound partner, and for each bad link."""
    tried = [trial for trial in history if trial.arm == BELOW[plan.arm]]
    pairs_tried = {frozenset(trial.members) for trial in tried}
    nodes_tried = {name for trial in tried if trial.phase == "pairs" for name in trial.members}
    taken: set[str] = set()
    groups: list[tuple[str, ...]] = []
    for name in books.nodes:
        if name not in named or name in nodes_tried:
            continue
        others = (other for other in books.nodes if other not in named and other not in taken)
        partner = next((other for other in others if books.sound(other, name, named)), "")
        if partner:
            taken |= {name, partner}
            groups.append((name, partner))
    for pair in open_pairs(books, named):
        passed = any(books.passes(a, b) for a, b in combinations(pair, 2))
        if not pair & taken and pair not in pairs_tried and not passed:
            taken |= pair
            groups.append(tuple(sorted(pair)))
    return tuple(groups)
