"""Looks that are made on other nodes: what comes home, and what is said of a node that sends
nothing, rubbish or half an answer.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainprobe.attach.nodes import accepted, nobody_answered
from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence
from trainprobe.model.progress import Silence
from trainprobe.model.record_classes import classes_of
from trainprobe.model.subjects import Subject
from trainprobe.nodes.answers import SCHEMA
from trainprobe.nodes.fan_out import Call, ask, call_all
from trainprobe.nodes.transports import Node, ours, srun_way, ssh_way
from trainprobe.system.interruption import Interrupted, Interruption

BEGIN = {"schema": SCHEMA, "says": "begin", "host": "own-name", "now": 0.0}
JOB = {
    "id": "E1",
    "kind": "job",
    "subject": {"kind": "job", "host": "own-name"},
    "cell": "job",
    "data": {"host": "own-name", "ranks": []},
}


def end(reason: str = "", skew_s: float = 0.0, *, none: bool = False) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "says": "end",
        "reason": reason,
        "none": none,
        "now": time.time() + skew_s,
    }


def saying(name: str, *rows: object, code: int = 0) -> Node:
    """A node that says these rows: dicts as JSON, texts as they are."""
    lines = [json.dumps(row) if isinstance(row, dict) else str(row) for row in rows]
    return Node(
        name, (sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit({code})")
    )


def looked(folder: Path, nodes: Sequence[Node], look_s: float = 5.0) -> dict[str, list[Evidence]]:
    with Case.create(str(folder / "case"), "attach", ()) as case:
        ask(nodes, case, look_s, Silence(), accepted(), "attach")
        found: dict[str, list[Evidence]] = {}
        for record in case.evidence:
            found.setdefault(record.subject.host, []).append(record)
        return found


def test_evidence_comes_home_under_the_name_that_the_site_gives_the_node(tmp_path: Path) -> None:
    look, job = looked(tmp_path, [saying("node7", BEGIN, JOB, end())])["node7"]
    assert (look.kind, look.outcome, job.kind, job.data["host"]) == (
        "node.look",
        "ok",
        "job",
        "node7",
    )


def test_a_banner_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    found = looked(
        tmp_path,
        [saying("node7", "Welcome to the cluster!", '{"schema": "of another"}', BEGIN, JOB, end())],
    )["node7"]
    assert [record.kind for record in found] == ["node.look", "job"]


def test_a_clock_that_goes_wrong_is_set_right_by_the_difference(tmp_path: Path) -> None:
    began = time.time() + 300
    look, job = looked(
        tmp_path, [saying("node7", BEGIN, {**JOB, "began": began}, end(skew_s=300))]
    )["node7"]
    assert (
        look.data["clock_skew_s"] == pytest.approx(300, abs=5),
        job.began == pytest.approx(began - 300, abs=5),
    ) == (True, True)


def test_an_answer_that_had_come_long_before_the_call_was_over_is_no_clock_that_goes_wrong(
    tmp_path: Path,
) -> None:
    rows = [
        json.dumps({**BEGIN, "now": time.time() + 0.5}),
        json.dumps({**JOB, "began": 1000.0}),
        json.dumps(end()),
    ]
    slow = Node(
        "node7",
        (
            sys.executable,
            "-c",
            f"import time; print({chr(10).join(rows)!r}, flush=True); time.sleep(2.5)",
        ),
    )
    look, job = looked(tmp_path, [slow])["node7"]
    assert (look.outcome, look.data["clock_skew_s"], job.began) == ("ok", 0.0, 1000.0)


def test_a_node_that_has_no_such_job_says_so(tmp_path: Path) -> None:
    (look,) = looked(
        tmp_path,
        [saying("node7", BEGIN, end("No training process of job 4 runs on node7.", none=True))],
    )["node7"]
    assert (look.outcome, look.reason, look.data["answered"]) == (
        "unavailable",
        "No training process of job 4 runs on node7.",
        True,
    )


def test_half_an_answer_is_kept_and_said_to_be_half(tmp_path: Path) -> None:
    look, job = looked(tmp_path, [saying("node7", BEGIN, JOB)])["node7"]
    assert (look.outcome, look.reason, job.kind) == (
        "partial",
        "node7 sent 1 records and not its end",
        "job",
    )


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (
            saying("node7", "command not found", code=127),
            "node7 cannot be looked at: it ended with code 127 and printed nothing",
        ),
        (
            Node("node7", ("/nowhere/srun",)),
            "/nowhere/srun cannot be run: No such file or directory",
        ),
        (
            Node(
                "node7",
                (
                    sys.executable,
                    "-c",
                    "import sys; sys.exit('srun: error: Unable to create step')",
                ),
            ),
            "srun: error: Unable to create step",
        ),
    ],
    ids=["says nothing", "no such program", "refused"],
)
def test_a_node_that_cannot_be_looked_at_is_evidence_with_the_reason(
    tmp_path: Path, node: Node, words: str
) -> None:
    (look,) = looked(tmp_path, [node])["node7"]
    assert (look.outcome, words in look.reason) == ("unavailable", True)


def test_a_node_that_stands_still_is_waited_for_in_proportion_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.fan_out.LEAST_BEHIND_S", 1.0)
    monkeypatch.setattr("trainprobe.nodes.fan_out.START_S", 1.0)
    began = time.monotonic()
    found = looked(
        tmp_path,
        [
            saying("node1", BEGIN, JOB, end()),
            saying("node2", BEGIN, JOB, end()),
            Node("node3", ("sleep", "60")),
        ],
        look_s=30,
    )
    took_s = time.monotonic() - began

    (look,) = found["node3"]
    assert (look.outcome, look.reason.startswith("node3 did not answer within"), took_s < 20) == (
        "timed_out",
        True,
        True,
    )


def test_a_node_that_starts_slowly_is_not_called_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.fan_out.LEAST_BEHIND_S", 0.2)
    slow = saying("node3", BEGIN, JOB, end())
    program = shlex.join(slow.argv)
    found = looked(
        tmp_path,
        [
            saying("node1", BEGIN, JOB, end()),
            saying("node2", BEGIN, JOB, end()),
            Node("node3", ("sh", "-c", f"sleep 3; exec {program}")),
        ],
        look_s=30,
    )

    assert found["node3"][0].outcome == "ok"


def test_srun_makes_a_step_of_its_own_on_each_node() -> None:
    first, second = srun_way("4711", ("node1", "node2")).nodes(("look-here",))
    assert first.argv[0] == "srun"
    assert {"--overlap", "--jobid=4711", "--nodelist=node1", "--input=none"} <= set(first.argv)
    assert second.argv[-1] == "look-here"


def test_ssh_asks_for_nothing_and_may_be_another_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINPROBE_SSH", "ssh -F /etc/site/ssh_config")
    (node,) = ssh_way(("node1",)).nodes(("look-here", "--timeout", "10"))
    assert node.argv[:3] == ("ssh", "-F", "/etc/site/ssh_config")
    assert "BatchMode=yes" in node.argv
    assert node.argv[-1].endswith("look-here --timeout 10")


def test_the_command_is_this_tool_with_this_python() -> None:
    assert ours("look-here")[0] == sys.executable


def test_a_node_that_freezes_after_its_first_words_has_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.fan_out.LEAST_BEHIND_S", 1.0)
    monkeypatch.setattr("trainprobe.nodes.fan_out.START_S", 1.0)
    frozen = Node(
        "node3",
        (
            sys.executable,
            "-c",
            f"import time; print({json.dumps(BEGIN)!r}, flush=True); time.sleep(60)",
        ),
    )
    found = looked(
        tmp_path,
        [saying("node1", BEGIN, JOB, end()), saying("node2", BEGIN, JOB, end()), frozen],
        look_s=30,
    )
    (look,) = found["node3"]
    assert (look.outcome, look.reason.startswith("node3 did not answer within")) == (
        "timed_out",
        True,
    )


DEEP = "[" * 100_000
RUBBISH = (
    DEEP,
    f'{{"kind": "job", "data": {{"a": {DEEP}}}}}',
    '{"id": "E1", "kind": "job", "cell": "job", "began": 1' + "0" * 400 + "}",
    {**JOB, "began": "yesterday"},
    {**JOB, "kind": ["job"]},
    {**JOB, "subject": 7},
    {**JOB, "outcome": "denied"},
    {**JOB, "cell": "user_script@4"},
    {**JOB, "kind": "resumed", "data": {"void": ["E1", "E2"]}},
    {**JOB, "kind": "reach", "data": {"by": "ssh", "command": "rm -rf /"}},
    {**JOB, "kind": "node.look"},
    {**JOB, "kind": "interrupted"},
)


@pytest.mark.parametrize("row", RUBBISH, ids=range(len(RUBBISH)))
def test_what_no_look_says_is_passed_over(tmp_path: Path, row: object) -> None:
    found = looked(tmp_path, [saying("node7", BEGIN, row, JOB, end())])
    assert {host: [record.kind for record in records] for host, records in found.items()} == {
        "node7": ["node.look", "job"]
    }


@pytest.mark.parametrize(
    "now", ["soon", None, float("nan"), float("inf"), -1e300, [1], True, 10**400]
)
def test_a_clock_that_says_nonsense_is_taken_for_ours(tmp_path: Path, now: object) -> None:
    look, job = looked(
        tmp_path, [saying("node7", BEGIN, {**JOB, "began": 1000.0}, {**end(), "now": now})]
    )["node7"]
    assert (look.outcome, look.data["clock_skew_s"], job.began) == ("ok", 0.0, 1000.0)


def test_a_node_speaks_for_itself_alone(tmp_path: Path) -> None:
    row = {
        **JOB,
        "subject": {"kind": "job", "host": "node1", "role": "\x1b[31mrank", "unknown": "x"},
        "data": {"host": "node1", "ranks": []},
    }
    _, job = looked(tmp_path, [saying("node7", BEGIN, row, end())])["node7"]
    assert (
        job.subject.host,
        job.data["host"],
        "\x1b" in job.subject.role,
        dict(job.subject.extra),
    ) == ("node7", "node7", False, {})


def test_a_flood_is_cut_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainprobe.nodes.answers.MOST_RECORDS", 3)
    found = looked(tmp_path, [saying("node7", BEGIN, *[JOB] * 10, end())])["node7"]
    assert (len(found), found[0].outcome, found[0].reason) == (
        4,
        "partial",
        "node7 sent 3 records and more than a look may send",
    )


def test_every_look_at_a_job_may_come_from_a_node() -> None:
    cases = (Path(__file__).parents[2] / "cases").glob("attach-*/evidence.jsonl")
    assert {
        json.loads(line)["kind"] for path in cases for line in path.read_text().splitlines()
    } <= accepted().kinds


def test_ctrl_c_ends_the_asking_and_what_came_until_then_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.fan_out.AT_ONCE", 3)
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    slow = [Node(f"slow{number}", ("sleep", "61")) for number in range(5)]
    began = time.monotonic()
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        timer.start()
        with pytest.raises(Interrupted):
            ask(
                [saying("node1", BEGIN, JOB, end()), *slow],
                case,
                30.0,
                Silence(),
                accepted(),
                "attach",
            )
        took_s = time.monotonic() - began
        looks = {
            record.subject.host: record for record in case.evidence if record.kind == "node.look"
        }
        kinds = [record.kind for record in case.evidence]
    assert (looks["node1"].outcome, kinds[-1], took_s < 15) == ("ok", "interrupted", True)
    assert {(looks[node.name].outcome, looks[node.name].data["asked"]) for node in slow} == {
        ("unavailable", False)
    }


def test_a_command_for_ssh_that_is_none_is_an_error_of_usage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRAINPROBE_SSH", "ssh -F 'unclosed")
    with pytest.raises(UsageError, match="TRAINPROBE_SSH is no command"):
        ssh_way(("node1",)).nodes(("look-here",))


def test_this_very_host_needs_no_ssh() -> None:
    here, short, other = ssh_way((os.uname().nodename, "localhost", "node-of-nobody")).nodes(
        ("look-here",)
    )
    assert (here.argv[0], short.argv[0], other.argv[0]) == (sys.executable, sys.executable, "ssh")


def test_a_node_that_is_refused_at_once_shortens_nobodys_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.fan_out.LEAST_BEHIND_S", 1.0)
    slow = Node(
        "node1",
        (
            sys.executable,
            "-c",
            (
                f"import time; time.sleep(2.0); print({json.dumps(BEGIN)!r});"
                f" print({json.dumps(JOB)!r}); print({json.dumps(end())!r})"
            ),
        ),
    )
    found = looked(tmp_path, [slow, Node("node2", ("false",))])
    assert (found["node1"][0].outcome, found["node2"][0].outcome) == ("ok", "unavailable")


def test_where_no_node_has_shown_a_job_the_reasons_are_told(tmp_path: Path) -> None:
    nodes = [
        saying("node1", BEGIN, end("No training process of yours runs on node1.", none=True)),
        Node("node2", ("false",)),
    ]
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        ask(nodes, case, 5.0, Silence(), accepted(), "attach")
        with pytest.raises(UsageError) as raised:
            nobody_answered(case)
    assert (
        "No training process of yours runs on node1" in raised.value.says,
        "node2 cannot be looked at: it ended with code 1" in raised.value.says,
    ) == (
        True,
        True,
    )


def test_where_one_node_has_shown_a_job_there_is_a_report(tmp_path: Path) -> None:
    with Case.create(str(tmp_path / "case"), "attach", ()) as case:
        ask(
            [saying("node1", BEGIN, JOB, end()), Node("node2", ("false",))],
            case,
            5.0,
            Silence(),
            accepted(),
            "attach",
        )
        nobody_answered(case)
        assert "job" in [record.kind for record in case.evidence]


def of_rank(number: int, **data: Any) -> Any:
    subject = Subject("rank", host="own-name", rank=number, pid=40 + number)
    return to_json(
        Evidence(f"E{number + 2}", "process", subject, "job", data={"pid": 40 + number, **data})
    )


WHOLE_JOB = to_json(
    Evidence(
        "E1",
        "job",
        Subject("job", host="own-name"),
        "job",
        data={"host": "own-name", "ranks": []},
    )
)


def test_an_answer_in_classes_says_what_one_in_records_says(tmp_path: Path) -> None:
    rows = [WHOLE_JOB, of_rank(0), of_rank(1, frozen=True), of_rank(2)]
    alone = looked(tmp_path / "alone", [saying("node7", BEGIN, *rows, end())])["node7"]
    together = looked(tmp_path / "together", [saying("node7", BEGIN, *classes_of(rows), end())])
    assert [to_json(one) for one in together["node7"][1:]] == [to_json(one) for one in alone[1:]]
    assert {one.subject.host for one in together["node7"]} == {"node7"}
    assert together["node7"][1].data["host"] == "node7"
    schemas = [
        json.loads((tmp_path / name / "case" / "case.json").read_text(encoding="utf-8"))["schema"]
        for name in ("alone", "together")
    ]
    assert schemas == ["trainprobe.case/1", "trainprobe.case/2"]


@pytest.mark.parametrize("field", ["kind", "cell", "began", "took_s"])
def test_what_no_look_says_is_passed_over_in_a_class_too(tmp_path: Path, field: str) -> None:
    wrong = {"kind": "reach", "cell": "user_script@4", "began": -5.0, "took_s": float("inf")}
    rows = [WHOLE_JOB, of_rank(0), {**of_rank(1), field: wrong[field]}, of_rank(2)]
    found = looked(tmp_path, [saying("node7", BEGIN, *classes_of(rows), end())])["node7"]
    assert [one.subject.rank for one in found if one.kind == "process"] == [0, 2]


def test_a_flood_of_a_class_is_cut_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainprobe.nodes.answers.MOST_RECORDS", 3)
    rows = [WHOLE_JOB, *map(of_rank, range(5))]
    found = looked(tmp_path, [saying("node7", BEGIN, *classes_of(rows), end())])["node7"]
    assert [(one.kind, one.outcome) for one in found] == [("node.look", "partial"), ("job", "ok")]


def test_no_more_answers_wait_to_be_read_than_nodes_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    most: list[int] = []
    heard: list[str] = []

    def answers(node: Node, *_: object) -> Call:
        asked.append(node.name)
        return Call(None, 0.0, 0.0)

    def hear(node: Node, _: Call) -> bool:
        time.sleep(0.005)
        heard.append(node.name)
        most.append(len(asked) - len(heard))
        return True

    monkeypatch.setattr("trainprobe.nodes.fan_out._asked", answers)
    nodes = [Node(f"node{number}", ("true",)) for number in range(60)]
    with Interruption() as interruption:
        call_all(nodes, 1.0, hear, interruption, Silence(), at_once=4)
    assert len(heard) == 60
    assert max(most) <= 8


def test_nodes_whose_commands_outlast_all_time_are_told_until_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[list[str]] = []
    enough = threading.Event()

    def answers(node: Node, *_: object) -> Call:
        if node.name == "node1":
            assert enough.wait(30)
        return Call(None, 0.0, 0.0)

    def hear_overdue(names: Sequence[str]) -> None:
        told.append(list(names))
        if len(told) == 2:
            enough.set()

    monkeypatch.setattr("trainprobe.nodes.fan_out._asked", answers)
    monkeypatch.setattr("trainprobe.nodes.fan_out.OVERDUE_S", 0.0)
    nodes = [Node(f"node{number}", ("true",)) for number in range(3)]
    with Interruption() as interruption:
        call_all(
            nodes,
            1.0,
            lambda *_: True,
            interruption,
            Silence(),
            patient=True,
            most_s=0.1,
            overdue=hear_overdue,
        )
    assert told[:2] == [["node1"], ["node1"]]
    assert told[-1] == []
