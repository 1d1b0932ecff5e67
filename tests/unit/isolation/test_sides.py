"""What two members told of each other, put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainprobe.isolation.sides import Side, judged, side_of

PORTS = ("5000", "33000", "40000", "50000", "29500")
WELL: Mapping[str, Any] = {
    "heard": True,
    "address": "",
    "datagrams": 1050,
    "series_theirs": 1000,
    "series_missing": 0,
    "dropped_here": 0,
    "rtt_least_ms": 0.1,
    "mbps": 240.0,
    "segments": 9000,
    "segments_again": 2,
}
DEAD: Mapping[str, Any] = {
    "heard": False,
    "datagrams": 0,
    "series_theirs": 0,
    "mbps": None,
    "rtt_least_ms": None,
}


def states(state: str = "ok", **other: str) -> dict[str, str]:
    return {port: other.get(f"p{port}", state) for port in PORTS}


def side(
    name: str,
    other: str,
    ports: Mapping[str, str],
    told: Mapping[str, Any] = WELL,
    own: Mapping[str, Any] | None = None,
    **more: Any,
) -> Side:
    at = {"a": "10.0.0.1", "b": "10.0.0.2"}
    row = {
        **WELL,
        **told,
        "peer": other,
        "address": told.get("address") or at[other],
        "ports": dict(ports),
    }
    return Side(
        name,
        ran=True,
        answer="yes",
        own={"address": at[name], "taken": {}, "udp": "", **(own or {})},
        peers={other: row},
        **{"began": 0.0, "ended": 9.0, **more},
    )


CASES: Mapping[str, tuple[Side, Side, str, str, list[tuple[str, str]]]] = {
    "all is well": (side("a", "b", states()), side("b", "a", states()), "passed", "", []),
    "b hears nothing": (
        side("a", "b", states("timeout"), {**WELL, "datagrams": 60}),
        side("b", "a", states("timeout"), DEAD),
        "failed",
        "one-way",
        [("a", "b")],
    ),
    "neither hears": (
        side("a", "b", states("timeout"), DEAD),
        side("b", "a", states("timeout"), DEAD),
        "failed",
        "unreachable",
        [("a", "b"), ("b", "a")],
    ),
    "no port of b answers": (
        side("a", "b", states("timeout")),
        side("b", "a", states()),
        "failed",
        "blocked-ports",
        [("a", "b")],
    ),
    "some ports are dropped": (
        side("a", "b", states(p40000="timeout")),
        side("b", "a", states()),
        "failed",
        "blocked-ports",
        [("a", "b")],
    ),
    "ports are refused": (
        side("a", "b", states("refused")),
        side("b", "a", states()),
        "failed",
        "refused",
        [("a", "b")],
    ),
    "another host answers": (
        side("a", "b", states("refused"), {**WELL, "address": "10.0.0.77"}),
        side("b", "a", states()),
        "failed",
        "wrong-address",
        [("a", "b")],
    ),
    "nobody answers at another address": (
        side("a", "b", states("timeout"), {**WELL, "address": "10.9.0.7"}),
        side("b", "a", states(), {**WELL, "datagrams": 0}),
        "failed",
        "wrong-address",
        [("a", "b")],
    ),
    "the name is unknown, and nobody waits": (
        side("a", "b", {}, {**DEAD, "trouble": "b: Name or service not known"}, ended=0.2),
        side("b", "a", states("refused"), DEAD, began=3.0),
        "failed",
        "wrong-address",
        [("a", "b"), ("b", "a")],
    ),
    "the name is a loopback": (
        side("a", "b", states("refused"), {**DEAD, "address": "127.0.1.1"}),
        side("b", "a", states()),
        "failed",
        "wrong-address",
        [("a", "b")],
    ),
    "one port is used by another": (
        side("a", "b", states(p29500="foreign")),
        side("b", "a", states(), own={"taken": {"29500": "in use"}}),
        "passed",
        "",
        [],
    ),
    "a busy host is slow to speak": (
        side("a", "b", states(p40000="silent")),
        side("b", "a", states()),
        "passed",
        "",
        [],
    ),
    "ten of a thousand are lost": (
        side("a", "b", states()),
        side("b", "a", states(), {**WELL, "series_missing": 10}),
        "failed",
        "loss",
        [("a", "b")],
    ),
    "a full buffer is no loss": (
        side("a", "b", states()),
        side("b", "a", states(), {**WELL, "series_missing": 10, "dropped_here": 9}),
        "passed",
        "",
        [],
    ),
    "large packets vanish": (
        side("a", "b", states(), {**WELL, "stuck": True, "mbps": 0.0}),
        side("b", "a", states()),
        "failed",
        "large-packets",
        [("a", "b")],
    ),
    "two are no loss": (
        side("a", "b", states()),
        side("b", "a", states(), {**WELL, "series_missing": 2}),
        "passed",
        "",
        [],
    ),
    "TCP alone shows the loss": (
        side(
            "a", "b", states(), {**WELL, "datagrams": 0, "series_theirs": 0, "segments_again": 100}
        ),
        side("b", "a", states(), {**WELL, "datagrams": 0, "series_theirs": 0}),
        "failed",
        "loss",
        [("a", "b")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_both_saw(name: str) -> None:
    a, b, outcome, how, ways = CASES[name]
    found = judged([a, b], "tcp")
    assert (found.outcome, found.how, [(link.a, link.b) for link in found.links if link.how]) == (
        outcome,
        how,
        ways,
    )


def test_members_that_were_not_there_at_the_same_time_show_nothing() -> None:
    early, late = (
        side("a", "b", states("timeout"), DEAD, ended=4.0),
        side("b", "a", states("timeout"), DEAD, began=3.5, ended=9.0),
    )
    assert judged([early, late], "tcp").outcome == "not_measured"


def test_a_member_that_never_spoke_is_missing() -> None:
    found = judged(
        [side("a", "b", states("refused"), DEAD), side_of("b", [], "b did not answer within 9 s")],
        "tcp",
    )
    assert (found.outcome, found.missing, "did not answer" in found.says) == (
        "not_measured",
        ("b",),
        True,
    )


def test_events_of_a_sum() -> None:
    right = [
        {"event": "measure", "name": "took_ms", "value": 3.5, "at": 1.0},
        {"event": "result", "answer": "yes", "says": "exact", "at": 2.0},
    ]
    wrong = [
        {"event": "fail", "kind": "wrong-result", "at": 1.0},
        {"event": "result", "answer": "no", "says": "wrong", "at": 2.0},
    ]
    passed = judged([side_of("a", right, ended=9.0), side_of("b", right, ended=9.0)], "gloo")
    assert (passed.outcome, passed.measures) == ("passed", {"took_ms": 3.5})
    failed = judged([side_of("a", right), side_of("b", wrong)], "gloo")
    assert (failed.outcome, failed.how) == ("failed", "wrong-result")
    unmade = [{"event": "result", "answer": "cannot", "says": "no torch", "at": 1.0}]
    assert judged([side_of("a", unmade), side_of("b", right)], "gloo").outcome == "not_measured"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "event",
        "name",
        "peer",
        "at",
        "ports",
        "heard",
        "datagrams",
        "series_missing",
        "series_theirs",
        "address",
        "taken",
        "answer",
        "says",
        "value",
    ]
)
EVENT = st.dictionaries(
    FIELDS,
    st.sampled_from(["note", "peer", "self", "result", "a", "b", "measure", "took_ms"]) | JSON,
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENT, max_size=6), st.lists(EVENT, max_size=6), st.sampled_from(["tcp", "gloo"]))
def test_whatever_a_node_sends_is_read(
    first: list[dict[str, Any]], second: list[dict[str, Any]], arm: str
) -> None:
    found = judged([side_of("a", first), side_of("b", second)], arm)
    assert found.members == ("a", "b")
