"""Looks that are made on other nodes: what comes home, and what is said of a node that sends nothing, rubbish or half an answer."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainprobe.attach.nodes import SCHEMA, Node, by_srun, by_ssh, look_on_nodes, ours
from trainprobe.case import Case
from trainprobe.model.evidence import Evidence
from trainprobe.model.progress import Silence

BEGIN = {"schema": SCHEMA, "says": "begin", "host": "own-name", "now": 0.0}
JOB = {"id": "E1", "kind": "job", "subject": {"kind": "job", "host": "own-name"}, "cell": "job", "data": {"host": "own-name", "ranks": []}}


def end(reason: str = "", skew_s: float = 0.0) -> dict[str, object]:
    return {"schema": SCHEMA, "says": "end", "reason": reason, "now": time.time() + skew_s}


def saying(name: str, *rows: object, code: int = 0) -> Node:
    """A node that says these rows: dicts as JSON, texts as they are."""
    lines = [json.dumps(row) if isinstance(row, dict) else str(row) for row in rows]
    return Node(name, (sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit({code})"))


def looked(folder: Path, nodes: Sequence[Node], look_s: float = 5.0) -> dict[str, list[Evidence]]:
    with Case.create(str(folder / "case"), "attach", ()) as case:
        look_on_nodes(nodes, case, look_s, Silence())
        found: dict[str, list[Evidence]] = {}
        for record in case.evidence:
            found.setdefault(record.subject.host, []).append(record)
        return found


def test_evidence_comes_home_under_the_name_that_the_site_gives_the_node(tmp_path: Path) -> None:
    (look, job) = looked(tmp_path, [saying("node7", BEGIN, JOB, end())])["node7"]
    assert (look.kind, look.outcome, job.kind, job.data["host"]) == ("node.look", "ok", "job", "node7")


def test_a_banner_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    found = looked(tmp_path, [saying("node7", "Welcome to the cluster!", '{"schema": "of another"}', BEGIN, JOB, end())])["node7"]
    assert [record.kind for record in found] == ["node.look", "job"]


def test_a_clock_that_goes_wrong_is_set_right_by_the_difference(tmp_path: Path) -> None:
    began = time.time() + 300
    (look, job) = looked(tmp_path, [saying("node7", BEGIN, {**JOB, "began": began}, end(skew_s=300))])["node7"]
    assert (look.data["clock_skew_s"] == pytest.approx(300, abs=5), job.began == pytest.approx(began - 300, abs=5)) == (True, True)


def test_a_node_that_has_no_such_job_says_so(tmp_path: Path) -> None:
    (look,) = looked(tmp_path, [saying("node7", BEGIN, end("No training process of job 4 runs on node7."))])["node7"]
    assert (look.outcome, look.reason) == ("unavailable", "No training process of job 4 runs on node7.")


def test_half_an_answer_is_kept_and_said_to_be_half(tmp_path: Path) -> None:
    (look, job) = looked(tmp_path, [saying("node7", BEGIN, JOB)])["node7"]
    assert (look.outcome, look.reason, job.kind) == ("partial", "node7 broke off its answer after 1 records", "job")


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (saying("node7", "command not found", code=127), "node7 cannot be looked at: it ended with code 127 and said nothing"),
        (Node("node7", ("/nowhere/srun",)), "/nowhere/srun cannot be run: No such file or directory"),
        (Node("node7", (sys.executable, "-c", "import sys; sys.exit('srun: error: Unable to create step')")), "srun: error: Unable to create step"),
    ],
    ids=["says nothing", "no such program", "refused"],
)
def test_a_node_that_cannot_be_looked_at_is_evidence_with_the_reason(tmp_path: Path, node: Node, words: str) -> None:
    (look,) = looked(tmp_path, [node])["node7"]
    assert (look.outcome, words in look.reason) == ("unavailable", True)


def test_a_node_that_stands_still_is_waited_for_in_proportion_to_the_others(tmp_path: Path) -> None:
    began = time.monotonic()
    found = looked(tmp_path, [saying("node1", BEGIN, end()), saying("node2", BEGIN, end()), Node("node3", ("sleep", "60"))], look_s=30)
    took_s = time.monotonic() - began

    (look,) = found["node3"]
    assert (look.outcome, look.reason.startswith("node3 did not answer within"), took_s < 20) == ("timed_out", True, True)


def test_srun_makes_a_step_of_its_own_on_each_node() -> None:
    first, second = by_srun("4711", ("node1", "node2"), ("look-here",))
    assert first.argv[0] == "srun"
    assert {"--overlap", "--jobid=4711", "--nodelist=node1", "--input=none"} <= set(first.argv)
    assert second.argv[-1] == "look-here"


def test_ssh_asks_for_nothing_and_may_be_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINPROBE_SSH", "ssh -F /etc/site/ssh_config")
    (node,) = by_ssh(("node1",), ("look-here", "--timeout", "10"))
    assert node.argv[:3] == ("ssh", "-F", "/etc/site/ssh_config")
    assert "BatchMode=yes" in node.argv
    assert node.argv[-1].endswith("look-here --timeout 10")


def test_the_command_is_this_tool_with_this_python() -> None:
    assert ours("look-here")[0] == sys.executable
