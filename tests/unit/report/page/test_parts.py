"""The parts of the page: graph, source lines, timeline of collectives, comparison, raw records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.report import handmade
from tests.unit.report.page.pages import exhibits, judged, large, page
from trainprobe.facts import SourceSite
from trainprobe.facts.collectives import CollectiveCall
from trainprobe.model.diagnosis import Link, RankRow, World
from trainprobe.model.evidence import Evidence
from trainprobe.model.ranks import name_ranks
from trainprobe.report.page.collective_timeline import collective_section
from trainprobe.report.page.exhibits import RAW_BYTES, exhibits_of
from trainprobe.report.page.scaling_charts import _round_levels
from trainprobe.report.page.source_lines import excerpts_of
from trainprobe.report.page.wait_graph import WaitGraph, ranks_named, wait_graph


@pytest.mark.parametrize("ranks", [(0,), (0, 1), (0, 1, 2, 5), (3, 5, 7), tuple(range(1, 4096))])
def test_ranks_are_read_as_they_are_named(ranks: tuple[int, ...]) -> None:
    assert ranks_named(name_ranks(ranks)) == frozenset(ranks)
    assert ranks_named(f"{name_ranks(ranks)}, which has ended") == frozenset(ranks)
    assert ranks_named("the lock on /rank 3") == frozenset()


def edges(graph: WaitGraph) -> list[tuple[str, str]]:
    return [(graph.nodes[one.waiter].name, graph.nodes[one.awaited].name) for one in graph.edges]


def test_the_graph_leads_from_the_victims_to_the_culprit_and_on() -> None:
    graph = wait_graph(judged("attach-lock-held-outside")[0])
    assert edges(graph) == [
        ("rank 0", "backward"),
        ("backward", "rank 1"),
        ("rank 1", "the lock on /job/features.cache"),
        ("the lock on /job/features.cache", "pid 5230"),
    ]
    assert [(node.role, node.layer) for node in graph.nodes] == [
        ("victim", 0),
        ("between", 1),
        ("culprit", 2),
        ("between", 3),
        ("end", 4),
    ]


def test_a_cycle_is_marked() -> None:
    graph = wait_graph(judged("conditional-collective")[0])
    assert all(node.in_cycle for node in graph.nodes)
    assert sorted(edge.is_backward for edge in graph.edges) == [False, True]
    assert not any(node.in_cycle for node in wait_graph(large(16, stuck=5)).nodes)


def test_ranks_that_no_chain_names_are_drawn_by_where_they_stand() -> None:
    report = large(16, stuck=5)
    rows = tuple(
        replace(row, where="loader.py:9 in get") if row.rank in (1, 2) else row
        for row in report.world.ranks
    )
    cause = replace(report.causes[0], chain=report.causes[0].chain[1:])
    graph = wait_graph(replace(report, world=World(16, rows), causes=(cause,)))
    assert ("ranks 1 and 2", "rank 5") in edges(graph)
    assert ("ranks 0, 3, 4 and 6-15", "rank 5") in edges(graph)


def test_a_long_ring_is_laid_out() -> None:
    chain = tuple(Link(f"rank {rank}", f"rank {(rank + 1) % 40}", "recv") for rank in range(40))
    rows = tuple(RankRow(rank, "a", state="waiting") for rank in range(40))
    cause = replace(handmade.HUNG.causes[0], ranks=(), chain=chain)
    graph = wait_graph(replace(handmade.HUNG, causes=(cause,), world=World(40, rows)))
    assert all(node.in_cycle for node in graph.nodes)
    assert sum(edge.is_backward for edge in graph.edges) == 1


def test_the_guilty_line_stands_first_with_what_encloses_it() -> None:
    report, _ = judged("attach-conditional-collective")
    first, second, *_ = excerpts_of(
        report, report.causes[0], exhibits("attach-conditional-collective").sites
    )
    assert [(line.number, line.text, line.mark) for line in first.lines] == [
        (7, "def save(model, step, path):", ""),
        (9, "dist.barrier()", "guilty"),
    ]
    named = [line.number for one in (first, second) for line in one.lines if line.named]
    assert 18 in named or 18 in [
        line.number
        for one in excerpts_of(
            report, report.causes[0], exhibits("attach-conditional-collective").sites
        )
        for line in one.lines
        if line.named
    ]


def test_without_source_the_line_of_the_rank_is_shown() -> None:
    report = large(16, stuck=5)
    cause = replace(report.causes[0], summary="Rank 5 waits.", because=())
    (first, *_) = excerpts_of(report, cause, ())
    assert (first.file, first.lines[0].number, first.lines[0].text) == (
        "cache.py",
        41,
        "fcntl.flock(file)",
    )
    elsewhere = SourceSite((), "job", file="/a/cache.py", line=41, text="with lock:", function="f")
    (first, *_) = excerpts_of(report, cause, (elsewhere,))
    assert first.lines[0].text == "with lock:"


def test_collectives_part_where_the_calls_differ() -> None:
    found = page("conditional-collective")["collectives"]
    assert "They part at #30." in found.text
    assert [one.text for one in found.all("th", "apart")] == ["30"]
    assert len(found.all("tbody")[0].all("tr")) == 2


def test_ranks_with_the_same_calls_share_a_row() -> None:
    calls = [
        CollectiveCall((), "job", rank=rank, number=number, op="all_reduce", finished=number < 9)
        for rank in range(512)
        for number in range(10 if rank != 3 else 9)
    ]
    found = collective_section(large(512), calls)
    assert found is not None
    assert found.count("<tr>") == 3
    assert "0-2,4-511" in found
    assert "They part at #9." in found
    assert collective_section(large(16), calls[:3]) is None


def test_raw_records_stay_within_the_budget_and_cited_ones_come_first() -> None:
    report = large(16, stuck=5)
    cited = report.causes[0].because[0].evidence[0]
    records = [
        Evidence(f"E{place}", "process", data={"text": "x" * 9000, "rows": [{"a": 1}] * 500})
        for place in range(1000, 1400)
    ]
    records.append(Evidence(cited, "locks", data={"holder": 911}))
    found = exhibits_of(report, records)
    assert found.raw[-1].id == cited
    assert found.raw[-1].cited
    assert found.raw[0].cut
    assert 10 < len(found.raw) < 400
    assert sum(len(str(one.data)) for one in found.raw) < RAW_BYTES * 1.2
    assert sum(found.kinds.values()) == 401


def test_levels_of_a_chart_are_round() -> None:
    assert _round_levels(3e9, 9e9, "bytes") == [2.0**32, 2.0**33]
    assert _round_levels(90, 1100, "") == [100, 200, 500, 1000]
    assert len(_round_levels(1, 1e12, "")) <= 6
