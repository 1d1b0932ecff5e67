"""Records of pairs that were tried, and what they show together."""

from __future__ import annotations

from typing import Any

from trainprobe.facts import Facts, read
from trainprobe.facts.pairs import BadLink, BadNode, CommonFault, PairsDone, PairTry, ScaleFault
from trainprobe.model.evidence import Evidence


def facts(*tries: dict[str, Any], done: dict[str, Any] | None = None) -> Facts:
    rows = [{"arm": "tcp", "round": 1, "phase": "pairs", **one} for one in tries]
    records = [
        Evidence(f"E{place}", "pair", cell="pairs", data=row) for place, row in enumerate(rows, 1)
    ]
    last = Evidence(
        "E99",
        "pair",
        cell="pairs",
        outcome="partial" if done and done.get("left") else "ok",
        reason="time" if done and done.get("left") else "",
        data=done or {"done": True},
    )
    return read([*records, last])


def failed(a: str, b: str, how: str = "loss", **more: Any) -> dict[str, Any]:
    return {
        "members": [a, b],
        "outcome": "failed",
        "how": how,
        "says": f"{a} to {b}: 9 of 1000 datagrams were lost",
        **more,
    }


def passed(a: str, b: str, **more: Any) -> dict[str, Any]:
    return {"members": [a, b], "outcome": "passed", **more}


def test_a_bad_node_with_the_tries_that_show_it() -> None:
    found = facts(
        failed("a", "b"), passed("c", "d"), failed("b", "c"), passed("a", "d"), failed("b", "d")
    )
    (node,) = found.of(BadNode)
    assert (node.host, node.how, node.certain, node.tries, node.evidence) == (
        "b",
        "loss",
        True,
        ("E1", "E3", "E5"),
        ("E1", "E3", "E5"),
    )
    assert "9 of 1000 datagrams" in node.says
    assert len(found.of(PairTry)) == 5
    assert (found.of(BadLink), found.of(CommonFault), found.of(ScaleFault)) == ((), (), ())


def test_a_link_with_the_way_that_fails() -> None:
    links = [{"a": "a", "b": "b", "how": "one-way"}, {"a": "b", "b": "a", "how": ""}]
    one_way = failed("a", "b", "one-way", links=links)
    found = facts(
        one_way,
        passed("c", "d"),
        passed("a", "c"),
        passed("b", "d"),
        one_way,
        passed("a", "d"),
        passed("b", "c"),
    )
    assert [(link.direction, link.how, link.certain) for link in found.of(BadLink)] == [
        ("a->b", "one-way", True)
    ]
    assert found.of(BadNode) == ()


def test_no_pair_passes() -> None:
    found = facts(
        failed("a", "b", "refused"),
        failed("c", "d", "refused"),
        failed("b", "c", "refused"),
        failed("d", "a", "refused"),
    )
    assert [(one.hosts, one.how, one.camps) for one in found.of(CommonFault)] == [
        (("a", "b", "c", "d"), "refused", ())
    ]
    assert found.of(BadNode) == ()


def test_groups_that_fail_from_a_size_on() -> None:
    names = [f"n{place}" for place in range(6)]
    whole = {"arm": "gloo", "phase": "scale", "members": names, "outcome": "failed"}
    steps = [
        {"arm": "gloo", "phase": "scale", "members": names[:size], "outcome": "passed"}
        for size in (2, 4, 5)
    ]
    assert [(one.size, one.members) for one in facts(*steps, whole, whole).of(ScaleFault)] == [
        (6, ())
    ]


def test_what_was_not_tried_is_told() -> None:
    found = facts(
        passed("a", "b"),
        done={
            "done": True,
            "nodes": ["a", "b", "c"],
            "tried": 1,
            "left": ["every node with its other neighbour: 1 groups"],
        },
    )
    assert [(one.nodes, one.tried, len(one.left)) for one in found.of(PairsDone)] == [
        (("a", "b", "c"), 1, 1)
    ]


def test_a_slow_pair_is_slow_by_the_others() -> None:
    fast = [
        passed(*pair, measures={"mbps": 240.0})
        for pair in (("c", "d"), ("e", "f"), ("a", "d"), ("d", "e"), ("f", "c"))
    ]
    slow = [passed(*pair, measures={"mbps": 9.0}) for pair in (("a", "b"), ("b", "e"), ("b", "c"))]
    assert [(one.host, one.how) for one in facts(*fast, *slow).of(BadNode)] == [("b", "slow")]


def test_records_of_another_shape_are_unreadable_and_cost_nothing_else() -> None:
    odd: list[dict[str, Any]] = [
        {"members": "a"},
        {"members": []},
        {"members": ["a", "b"], "arm": "carrier pigeon"},
        {"members": ["a", "b"], "measures": 7},
        {"members": ["a", "b"], "rail": "x"},
    ]
    found = facts(
        *odd,
        passed("a", "b"),
        {
            "members": ["a", "b"],
            "outcome": "?",
            "how": "?",
            "links": [{"a": 1}, "x"],
            "missing": ["z"],
            "measures": {"mbps": True},
        },
    )
    assert len(found.unreadable) == len(odd)
    assert [(one.outcome, one.how, one.missing) for one in found.of(PairTry)] == [
        ("passed", "", ()),
        ("not_measured", "", ()),
    ]
