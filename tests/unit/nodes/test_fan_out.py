"""How many nodes are asked at the same time, where the site says so."""

from __future__ import annotations

from pathlib import Path

from trainprobe.case import Case
from trainprobe.model.progress import Silence
from trainprobe.nodes.fan_out import ask
from trainprobe.nodes.transports import Node
from trainprobe.ready.remote_checks import ACCEPT


def test_the_sites_fan_out_holds_and_nobody_is_asked_too_late_to_answer(tmp_path: Path) -> None:
    took = [Node(f"node{place}", ("sleep", "1")) for place in range(3)]
    with Case.create(str(tmp_path / "case"), "ready", []) as case:
        assert (
            ask(took, case, 2.5, Silence(), ACCEPT, "ready", patient=True, most_s=4.0, at_once=1)
            == ()
        )
        looked = {
            one.subject.host: one.data.get("asked", True)
            for one in case.evidence
            if one.kind == "node.look"
        }
    assert looked == {"node0": True, "node1": True, "node2": False}
