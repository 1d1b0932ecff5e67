"""Sinks, cycles and chains, on small graphs drawn by hand and on random ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainprobe.model.waits import Node, Wait
from trainprobe.waits.graph import Graph


def node(key: object) -> Node:
    return Node("rank", str(key))


def graph(edges: list[tuple[int, int]], nodes: int = 0) -> Graph:
    return Graph(
        [node(key) for key in range(nodes)], [Wait(node(a), node(b), "waits for") for a, b in edges]
    )


def keys(nodes: object) -> list[str]:
    return [one.key for one in nodes]  # type: ignore[attr-defined]


def test_a_chain_ends_in_its_sink() -> None:
    ends = graph([(0, 1), (1, 2)]).ends()

    assert [keys(end) for end in ends] == [["2"]]


def test_a_cycle_that_nothing_leaves_is_one_end() -> None:
    ends = graph([(0, 1), (1, 2), (2, 1)]).ends()

    assert [keys(end) for end in ends] == [["1", "2"]]


def test_a_cycle_with_a_way_out_is_no_end() -> None:
    ends = graph([(0, 1), (1, 0), (1, 2)]).ends()

    assert [keys(end) for end in ends] == [["2"]]


def test_a_node_that_waits_for_itself_is_an_end() -> None:
    assert [keys(end) for end in graph([(0, 0)]).ends()] == [["0"]]


def test_victims_are_all_that_reach_the_end() -> None:
    drawn = graph([(0, 1), (1, 2), (3, 4)], nodes=5)

    assert sorted(keys(drawn.reaches([node(2)]))) == ["0", "1"]


def test_the_chain_is_the_shortest_and_in_order() -> None:
    drawn = graph([(0, 1), (1, 2), (2, 3), (0, 2)])

    chain = drawn.chain(node(0), [node(3)])

    assert [(wait.waiter.key, wait.awaited.key) for wait in chain] == [("0", "2"), ("2", "3")]
    assert drawn.chain(node(3), [node(0)]) == ()


def test_ten_thousand_ranks_in_a_row_do_not_exhaust_the_stack() -> None:
    ends = graph([(key, key + 1) for key in range(10_000)]).ends()

    assert [keys(end) for end in ends] == [["10000"]]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_every_node_reaches_some_end_and_no_end_leads_out(edges: list[tuple[int, int]]) -> None:
    drawn = graph(edges, nodes=13)
    ends = drawn.ends()
    members = {one for end in ends for one in end}

    assert members | drawn.reaches(members) == set(drawn.nodes)
    for end in ends:
        assert all(wait.awaited in end for one in end for wait in drawn.waits_of(one))
