"""The search over pairs: who is named, who never is, and that it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.isolation import Link, Plan, Try, Verdict, conclude, next_round
from trainprobe.isolation.pairing import one_idle, rotation, rounds_for_all
from trainprobe.isolation.trials import BELOW

Answer = Callable[[tuple[str, ...], str, int], Mapping[str, Any]]
OK: Mapping[str, Any] = {"outcome": "passed"}
BAD: Mapping[str, Any] = {"outcome": "failed", "how": "loss"}


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in range(count))


def searched(
    nodes: Sequence[str], answer: Answer, plan: Plan | None = None
) -> tuple[Verdict, list[Try]]:
    """Answer every round until there is a verdict; `answer` gets the members, the arm and how
    often these were tried before.
    """
    history: list[Try] = []
    for turn in range(1, 200):
        following = next_round(history, nodes, plan)
        if isinstance(following, Verdict):
            assert following == conclude(history, nodes, following.left)
            return following, history
        told = [name for group in following.groups for name in group]
        assert following.groups
        assert len(told) == len(set(told)), "a node is in two groups at once"
        for group in following.groups:
            before = sum(
                set(one.members) == set(group) and one.arm == following.arm for one in history
            )
            fields = answer(group, following.arm, before)
            history.append(
                Try(
                    group,
                    following.arm,
                    round=turn,
                    phase=following.phase,
                    id=f"E{len(history) + 1}",
                    **fields,
                )
            )
    raise AssertionError("the search does not end")


def faulty(*bad: str, links: Sequence[frozenset[str]] = ()) -> Answer:
    return lambda group, _arm, _before: (
        BAD if set(group) & set(bad) or any(link <= set(group) for link in links) else OK
    )


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 33])
def test_two_rounds_of_disjoint_pairs_cover_the_ring(count: int) -> None:
    nodes = names(count)
    rounds = [rotation(nodes, turn) for turn in range(2)]
    tried = {
        frozenset((a, b))
        for groups in rounds
        for group in groups
        for a in group
        for b in group
        if a != b
    }
    ring = {frozenset(pair) for pair in pairwise([*nodes, nodes[0]])}
    assert ring <= tried
    for groups in rounds:
        assert sorted(name for group in groups for name in group) == sorted(nodes)


@pytest.mark.parametrize("count", [4, 5, 8])
def test_later_rounds_reach_every_pair(count: int) -> None:
    nodes = names(count)
    tried = {
        frozenset(pair)
        for turn in range(2 * count)
        for pair in (*rotation(nodes, turn), *one_idle(nodes, turn))
    }
    assert sum(len(pair) == 2 for pair in tried) == count * (count - 1) // 2


@pytest.mark.parametrize(
    ("count", "bad"),
    [
        (3, ("n2",)),
        (4, ("n1",)),
        (4, ("n0", "n1")),
        (8, ("n1", "n3", "n5", "n7")),
        (9, ("n8",)),
        (64, ("n5", "n40")),
    ],
)
def test_bad_nodes_are_named_and_nobody_else(count: int, bad: tuple[str, ...]) -> None:
    verdict, history = searched(names(count), faulty(*bad))
    assert {one.host for one in verdict.nodes} == set(bad)
    assert (verdict.links, verdict.shared) == ((), ())
    shown = {one.id: one for one in history}
    for node in verdict.nodes:
        assert len(node.tries) >= 2
        assert all(shown[id_].bad and node.host in shown[id_].members for id_ in node.tries)


def test_a_bad_link_between_good_nodes_is_named_after_it_failed_twice() -> None:
    verdict, history = searched(names(8), faulty(links=[frozenset(("n2", "n3"))]))
    (link,) = verdict.links
    assert ({link.a, link.b}, link.certain, verdict.nodes) == ({"n2", "n3"}, True, ())
    assert sum(set(one.members) == {"n2", "n3"} for one in history) == 2


@pytest.mark.parametrize("count", range(4, 9))
def test_of_few_nodes_any_bad_link_is_met(count: int) -> None:
    nodes = names(count)
    for link in (frozenset(pair) for pair in combinations(nodes, 2)):
        verdict, _ = searched(nodes, faulty(links=[link]), Plan(breadth=rounds_for_all(count)))
        assert [{one.a, one.b} for one in verdict.links] == [link]
        assert verdict.nodes == ()


def test_of_two_good_nodes_the_one_with_a_wrong_address_for_the_other_is_named() -> None:
    way = Link(
        "n2",
        "n5",
        "wrong-address",
        "n2 to n5: nothing arrives at 10.9.0.7, and n5 is 10.0.0.5 to itself",
    )
    back = Link("n5", "n2", "refused", "n5 to n2: all ports are refused")
    bad = {"outcome": "failed", "how": way.how, "says": way.says, "links": (way, back)}
    verdict, _ = searched(
        names(6),
        lambda group, _arm, _before: bad if set(group) == {"n2", "n5"} else OK,
        Plan(breadth=rounds_for_all(6)),
    )
    assert [(one.host, one.how) for one in verdict.nodes] == [("n2", "wrong-address")]
    assert verdict.nodes[0].says.startswith(
        "n2 has a wrong address for n5, whom others reach (n2 to n5: nothing arrives at 10.9.0.7"
    )
    assert verdict.links == ()


def test_a_pair_that_fails_once_and_passes_again_blames_nobody() -> None:
    verdict, _ = searched(
        names(6),
        lambda group, _arm, before: BAD if set(group) == {"n0", "n1"} and before == 0 else OK,
    )
    assert (verdict.clean, verdict.once) == (True, (("n0", "n1"),))


def test_a_failure_that_was_not_tried_again_is_no_pass() -> None:
    tries = [Try((a, b), outcome="passed") for a, b in (("a", "b"), ("c", "d"), ("b", "c"))]
    verdict = conclude([*tries, Try(("d", "a"), outcome="failed", how="blocked-ports")])
    assert [(link.certain, link.how) for link in verdict.links] == [(False, "blocked-ports")]
    assert "not tried again" in verdict.links[0].says


def test_of_two_nodes_neither_is_named() -> None:
    verdict, _ = searched(names(2), faulty("n0"))
    assert (verdict.nodes, [link.certain for link in verdict.links]) == ((), [False])


@pytest.mark.parametrize("count", [3, 4, 7])
def test_where_no_pair_passes_the_cause_is_common(count: int) -> None:
    verdict, _ = searched(names(count), lambda *_: {"outcome": "failed", "how": "refused"})
    assert (verdict.nodes, verdict.links, [one.how for one in verdict.shared]) == (
        (),
        (),
        ["refused"],
    )


def test_two_camps_are_told_as_such() -> None:
    left = {"n0", "n1"}
    verdict, _ = searched(
        names(4),
        lambda group, _arm, _before: OK if set(group) <= left or not set(group) & left else BAD,
    )
    assert (verdict.nodes, [sorted(map(set, one.camps), key=sorted) for one in verdict.shared]) == (
        (),
        [[left, {"n2", "n3"}]],
    )


def test_a_packet_lost_beside_a_dead_link_blames_no_node() -> None:
    def answer(group: tuple[str, ...], _arm: str, before: int) -> Mapping[str, Any]:
        if set(group) == {"n0", "n1"}:
            return {"outcome": "failed", "how": "one-way"}
        return BAD if set(group) == {"n1", "n3"} and before == 0 else OK

    verdict, _ = searched(names(6), answer)
    assert (verdict.nodes, [{link.a, link.b} for link in verdict.links]) == ((), [{"n0", "n1"}])


def test_a_silent_node_is_named_and_its_partner_gets_another() -> None:
    def answer(group: tuple[str, ...], _arm: str, _before: int) -> Mapping[str, Any]:
        return (
            {"outcome": "not_measured", "missing": ("n1",), "how": "silent"}
            if "n1" in group
            else OK
        )

    verdict, history = searched(names(4), answer)
    assert [(one.host, one.how) for one in verdict.nodes] == [("n1", "silent")]
    assert any(one.outcome == "passed" and "n0" in one.members for one in history)


def test_nobody_is_named_where_all_are_silent() -> None:
    verdict, history = searched(
        names(4),
        lambda group, *_: {"outcome": "not_measured", "missing": group, "says": "no route"},
    )
    assert (verdict.nodes, len(history)) == ((), 4)
    assert verdict.left == ("no try of n0, n1, n2 and n3 gave a result (no route)",)


@pytest.mark.parametrize(
    ("arm", "below", "how"),
    [("gloo", "passed", "gloo-only"), ("nccl", "passed", "fabric"), ("nccl", "failed", "loss")],
)
def test_the_arm_below_tells_fabric_from_host(arm: str, below: str, how: str) -> None:
    def answer(group: tuple[str, ...], used: str, _before: int) -> Mapping[str, Any]:
        return OK if "n1" not in group or (used == BELOW[arm] and below == "passed") else BAD

    verdict, history = searched(names(4), answer, Plan(arm))
    assert [
        (one.host, one.how) for one in verdict.nodes if one.arm == arm or below == "failed"
    ] == [("n1", how)]
    assert any(one.arm == BELOW[arm] for one in history)


def test_a_slow_node_is_told_by_its_peers_and_noise_is_not() -> None:
    def answer(group: tuple[str, ...], _arm: str, before: int) -> Mapping[str, Any]:
        return {
            **OK,
            "measures": {"mbps": 20.0 if "n3" in group else 200.0 + 17 * (len(group[0]) + before)},
        }

    verdict, _ = searched(names(8), answer)
    assert [(one.host, one.how) for one in verdict.nodes] == [("n3", "slow")]
    quiet, _ = searched(
        names(8), lambda group, *_: {**OK, "measures": {"mbps": 150.0 + 20 * int(group[0][1:])}}
    )
    assert quiet.clean


def test_a_group_of_three_whose_directions_are_known_is_three_pairs() -> None:
    def answer(group: tuple[str, ...], _arm: str, _before: int) -> Mapping[str, Any]:
        links = tuple(
            Link(a, b, "one-way" if (a, b) == ("n2", "n4") else "")
            for a in group
            for b in group
            if a != b
        )
        return {
            "outcome": "failed" if any(link.how for link in links) else "passed",
            "how": "one-way",
            "links": links,
        }

    verdict, _ = searched(names(5), answer)
    assert [(link.direction, link.how, link.certain) for link in verdict.links] == [
        (("n2", "n4"), "one-way", True)
    ]


@pytest.mark.parametrize(("size", "late"), [(3, "n0"), (4, "n6"), (5, "n2"), (2, "n1")])
def test_a_fault_at_scale_is_found_with_its_node(size: int, late: str) -> None:
    answer: Answer = lambda group, _arm, _before: (  # noqa: E731
        BAD if len(group) >= max(size, 3) and late in group else OK
    )
    verdict, _ = searched(names(10), answer, Plan("gloo", ladder=True))
    assert [one.members for one in verdict.sizes] == [(late,)]


def test_a_size_that_fails_whoever_is_in_it_blames_nobody() -> None:
    verdict, _ = searched(
        names(16), lambda group, *_: BAD if len(group) >= 6 else OK, Plan("gloo", ladder=True)
    )
    assert [(one.size, one.members) for one in verdict.sizes] == [(6, ())]


def test_local_ranks_are_tried_apart() -> None:
    history: list[Try] = []
    plan = Plan("nccl", rails=2, control=False)
    while not isinstance(following := next_round(history, names(4), plan), Verdict):
        for group in following.groups:
            bad = following.rail == 1 and "n2" in group
            history.append(
                Try(
                    group,
                    "nccl",
                    "failed" if bad else "passed",
                    len(history),
                    rail=following.rail,
                    id=f"E{len(history)}",
                )
            )
    assert following.rails == ((1, "n2"),)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_healthy_node_or_link_is_ever_named(data: st.DataObject) -> None:
    """Whatever faults there are, steady ones: who is named is at fault, and with half of the
    nodes good all bad ones are named.
    """
    nodes = names(data.draw(st.integers(2, 14)))
    bad = data.draw(st.sets(st.sampled_from(nodes), max_size=len(nodes)))
    pairs = (
        st.tuples(st.sampled_from(nodes), st.sampled_from(nodes))
        .filter(lambda pair: pair[0] != pair[1])
        .map(frozenset)
    )
    links = data.draw(st.sets(pairs, max_size=1))
    verdict, _ = searched(nodes, faulty(*bad, links=sorted(links, key=sorted)))
    assert {one.host for one in verdict.nodes} <= bad
    assert all(
        frozenset((link.a, link.b)) in links or {link.a, link.b} & bad
        for link in verdict.links
        if link.certain
    )
    if len(nodes) >= 6 and len(bad) <= len(nodes) // 4:
        assert {one.host for one in verdict.nodes} == bad


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_search_ends_and_concludes_whatever_is_answered(data: st.DataObject) -> None:
    nodes = names(data.draw(st.integers(2, 9)))

    def answer(group: tuple[str, ...], _arm: str, _before: int) -> Mapping[str, Any]:
        outcome = data.draw(
            st.sampled_from(["passed", "failed", "slow", "timed_out", "not_measured"])
        )
        missing = (
            tuple(data.draw(st.sets(st.sampled_from(group)))) if outcome == "not_measured" else ()
        )
        return {
            "outcome": outcome,
            "missing": missing,
            "measures": {
                "mbps": data.draw(st.floats(0, 1e9)),
                "took_ms": data.draw(st.floats(0, 1e9)),
            },
        }

    searched(
        nodes,
        answer,
        Plan(data.draw(st.sampled_from(["tcp", "gloo"])), ladder=data.draw(st.booleans())),
    )
