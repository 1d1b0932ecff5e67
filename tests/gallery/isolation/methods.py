"""Three ways to find the fault: the tool's own search, DLRover's rule, and plain bisection. Each
gives the nodes and the links that it blames, and a size.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from tests.gallery.isolation.worlds import FAIL_TIME, World
from trainprobe.isolation import Plan, Try, Verdict, next_round


@dataclass(frozen=True)
class Blame:
    """`size` is the one from which groups fail, 0 where none was told; `shared` that the fault
    was called common to all.
    """

    nodes: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()
    size: int = 0
    shared: bool = False


def ours(world: World, plan: Plan) -> Blame:
    """The search as the tool runs it; only what is certain counts as blame."""
    history: list[Try] = []
    while not isinstance(following := next_round(history, world.nodes, plan), Verdict):
        for group, (passed, took) in zip(
            following.groups, world.round(following.groups), strict=True
        ):
            outcome = "passed" if passed else "failed"
            measures = {"took_ms": took * 100} if passed else {}
            history.append(
                Try(
                    tuple(group),
                    following.arm,
                    outcome,  # type: ignore[arg-type]
                    world.rounds,
                    phase=following.phase,
                    measures=measures,
                    id=f"E{len(history)}",
                )
            )
    nodes = {one.host for one in following.nodes if one.certain} | {
        name for one in following.sizes for name in one.members
    }
    links = frozenset(frozenset((one.a, one.b)) for one in following.links if one.certain)
    return Blame(
        frozenset(nodes),
        links,
        following.sizes[0].size if following.sizes else 0,
        bool(following.shared),
    )


def dlrover(world: World) -> Blame:
    """Two rounds: neighbours, then, sorted by the time that they took, the fastest with the
    slowest. Blamed is who failed in both; a straggler took twice the median in both. Fewer than
    four nodes are given up.
    """
    if len(world.nodes) < 4:
        return Blame()
    passed: dict[str, bool] = dict.fromkeys(world.nodes, False)
    took: dict[str, float] = dict.fromkeys(world.nodes, 3600.0)
    order = list(world.nodes)
    for turn in range(2):
        if turn:
            order.sort(key=lambda name: took[name])
            groups = [[order[place], order[-1 - place]] for place in range(len(order) // 2)]
            if len(order) % 2:
                groups[-1].append(order[len(order) // 2])
        else:
            groups = [order[place : place + 2] for place in range(0, len(order) - 1, 2)]
            if len(order) % 2:
                groups[-1].append(order[-1])
        for group, (good, time) in zip(groups, world.round(groups), strict=True):
            for name in group:
                passed[name] |= good
                took[name] = min(took[name], time if good else 3600.0)
    usual = median(took.values())
    return Blame(
        frozenset(
            name
            for name in world.nodes
            if not passed[name] or (took[name] > 2 * usual and took[name] < FAIL_TIME * 1000)
        )
    )


def bisection(world: World) -> Blame:
    """Split a group that fails, try both halves at once, and go down into those that fail; of a
    failing pair each is tried with a node that passed.
    """
    if world.round([world.nodes])[0][0]:
        return Blame()
    failing: list[tuple[str, ...]] = [world.nodes]
    good: list[str] = []
    pairs: list[tuple[str, ...]] = []
    while failing:
        halves = [
            half
            for group in failing
            for half in (group[: len(group) // 2], group[len(group) // 2 :])
        ]
        pairs += [half for half in halves if len(half) == 1]
        tried = [half for half in halves if len(half) > 1]
        failing = []
        for half, (passed, _) in zip(tried, world.round(tried) if tried else [], strict=True):
            if passed:
                good += half
            elif len(half) == 2:
                pairs += [(half[0],), (half[1],)]
            else:
                failing.append(half)
    blamed: set[str] = set()
    while pairs and good:
        now = [(one[0], partner) for one, partner in zip(pairs, good, strict=False)]
        blamed |= {
            pair[0] for pair, (passed, _) in zip(now, world.round(now), strict=True) if not passed
        }
        pairs = pairs[len(now) :]
    return Blame(frozenset(blamed))
