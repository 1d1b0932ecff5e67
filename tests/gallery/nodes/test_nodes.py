"""One planted fault and one healthy run on a real cluster, and the scoring itself; all of it is
`python -m tests.gallery.nodes.score`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import lane
from tests.gallery.nodes.decoys import DECOYS
from tests.gallery.nodes.draws import Draw, fault_draws, healthy_draws
from tests.gallery.nodes.faults import EVERY, PROMISED, Fault
from tests.gallery.nodes.score import one_run, run, wrongs
from tests.gallery.nodes.stand import COUNT, standing, why_not
from tests.gallery.nodes.ways import WAYS, Answer
from trainprobe import causes

BY_NAME = {fault.name: fault for fault in EVERY}
NODES = ("node1", "node2", "node3", "node4")
SMALL = BY_NAME["shm/8 MiB"]


def answered(
    cause: str, hosts: tuple[str, ...], exclude: tuple[str, ...], exit_code: int
) -> Answer:
    report: dict[str, Any] = {
        "causes": [{"id": cause, "hosts": list(hosts)}] if cause else [],
        "readiness": {"exclude": list(exclude)},
    }
    return Answer(exit_code, report, "", 1.0)


@pytest.mark.parametrize(
    ("fault", "answer", "words"),
    [
        (SMALL, answered("shm-exhausted", ("node2",), ("node2",), 10), ""),
        (SMALL, answered("disk-full", ("node2",), ("node2",), 10), "first cause disk-full"),
        (SMALL, answered("shm-exhausted", ("node3",), ("node3",), 10), "node3 is excluded"),
        (SMALL, answered("shm-exhausted", ("node2",), ("node2", "node3"), 10), "node3 is excluded"),
        (SMALL, answered("shm-exhausted", ("node2", "node3"), ("node2",), 10), "hosts node2,node3"),
        (SMALL, answered("shm-exhausted", ("node2",), (), 10), "nobody is excluded"),
        (SMALL, answered("shm-exhausted", ("node2",), ("node2",), 1), "exit 1"),
        (SMALL, Answer(None, {}, "", 1.0), "did not end"),
        (None, answered("", (), (), 0), ""),
        (None, answered("", (), (), 3), "exit 3"),
        (None, answered("link-degraded", ("node2",), ("node2",), 10), "node2 is excluded"),
        (BY_NAME["shm/8 MiB, everywhere"], answered("shm-exhausted", NODES, (), 1), ""),
        (
            BY_NAME["shm/8 MiB, everywhere"],
            answered("shm-exhausted", NODES, NODES, 10),
            "although all are alike",
        ),
        (
            BY_NAME["one-way/link"],
            answered("firewall-or-route", ("node2", "node3"), ("node3",), 10),
            "",
        ),
    ],
)
def test_the_score_tells_right_from_wrong(fault: Fault | None, answer: Answer, words: str) -> None:
    said = wrongs(Draw(0, "salloc", fault, 1, 2), answer, NODES)

    assert any(words in one for one in said) if words else said == []


def test_every_fault_and_decoy_is_drawn_on_each_way_that_it_can_be_seen_from() -> None:
    draws = fault_draws(EVERY, 4, COUNT)

    assert {draw.fault.name for draw in draws if draw.fault is not None} == set(BY_NAME)
    assert len({fault.kind for fault in PROMISED}) == 14
    assert {draw.way for draw in draws} == set(WAYS)
    assert all(draw.host != draw.other for draw in draws)
    assert not any(
        draw.way == "batch" and draw.fault.cuts and 0 in (draw.host, draw.other)
        for draw in draws
        if draw.fault is not None
    )
    assert all(causes.find(cause) is not None for fault in EVERY for cause in fault.causes)
    healthy = healthy_draws(100, COUNT)
    assert {decoy.name for draw in healthy for decoy, _ in draw.decoys} == {
        decoy.name for decoy in DECOYS
    }
    assert sum(not draw.decoys for draw in healthy) == 34


@pytest.mark.torch
def test_a_node_with_a_small_dev_shm_is_named_beside_one_with_more_memory(tmp_path: Path) -> None:
    """That well nodes are ready is tested in tests/cluster."""
    reason = why_not()
    if reason:
        pytest.skip(f"no cluster on this machine: {reason}")
    draw = Draw(0, "ssh", SMALL, 1, 2, ((DECOYS[0], 2),))

    assert [row["wrong"] for _, row in run([draw], tmp_path, lane(2), "quick")] == [[]]


@pytest.mark.soak
def test_no_harmless_difference_excludes_a_node(tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(f"no cluster on this machine: {reason}")
    draws = [
        Draw(number, WAYS[number % 3], decoys=((decoy, number % COUNT),))
        for number, decoy in enumerate(DECOYS)
    ]

    assert {
        row["decoys"][0]: row["wrong"]
        for _, row in run(draws, tmp_path, lane(2), "quick")
        if row["wrong"]
    } == {}


@pytest.mark.soak
@pytest.mark.parametrize("kind", sorted({fault.kind for fault in PROMISED}))
def test_each_kind_of_fault_is_named(kind: str, tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(f"no cluster on this machine: {reason}")
    draw = next(
        draw
        for draw in fault_draws(PROMISED, 1, COUNT)
        if draw.fault is not None and draw.fault.kind == kind
    )
    with standing(tmp_path / "stand", lane(2)) as stand:
        row = one_run(stand, draw, tmp_path / "run", "quick")

    assert row.get("skipped") or row["wrong"] == []
