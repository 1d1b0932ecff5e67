"""Names of nodes in the short form that SLURM takes."""

from __future__ import annotations

import pytest

from trainprobe.model.node_names import folded


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([], ""),
        (["node3"], "node3"),
        (["node7", "node1", "node2", "node3", "node2"], "node[1-3,7]"),
        (["n9", "n10"], "n[9-10]"),
        (["n08", "n09", "n10", "n011", "n100"], "n[08-10],n[011,100]"),
        (
            ["gpu-a", "rack1-node2", "rack1-node3", "rack2-node3"],
            "rack1-node[2-3],rack2-node3,gpu-a",
        ),
        (["n1-ib", "n2-ib"], "n1-ib,n2-ib"),
        (["9" * 30], "9" * 30),
    ],
)
def test_a_set_is_folded(names: list[str], short: str) -> None:
    assert folded(names) == short
