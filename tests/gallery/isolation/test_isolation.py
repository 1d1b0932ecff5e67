"""What docs/isolation.md says of invented clusters, of a few of them anew."""

from __future__ import annotations

import json

import pytest

from tests.gallery.isolation.run import RESULTS, cell

ROWS = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("one node", "quick"),
        ("a half", "dlrover"),
        ("link of neighbours", "quick"),
        ("flaky node 0.5", "standard"),
        ("two nodes", "bisection"),
    ],
)
def test_the_same_draws_give_the_numbers_that_are_kept(kind: str, method: str) -> None:
    (kept,) = (
        row for row in ROWS if (row["kind"], row["nodes"], row["method"]) == (kind, 5, method)
    )
    assert cell(kind, 5, method, kept["draws"]) == kept


def test_the_search_blamed_no_healthy_node_in_any_draw() -> None:
    ours = [row for row in ROWS if row["method"] in ("quick", "standard", "deep")]
    assert len(ours) > 200
    assert [row for row in ours if row["wrong"]] == []
