"""Every kind of evidence, and evidence of no kind at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.facts.records import CELL, SITE, Records, traceback_of
from trainprobe import facts as names
from trainprobe.facts import (
    Facts,
    Gpu,
    HostCheck,
    ImportTried,
    LockWait,
    LogEvent,
    MainThread,
    Measured,
    MemoryLimit,
    OomKill,
    Output,
    Plan,
    ProbeFailure,
    ProbeResult,
    ProcessState,
    Progress,
    Rung,
    Script,
    Segfault,
    Skip,
    SourceSite,
    Thread,
    Xid,
    read,
    reading,
)
from trainprobe.facts.reading import PARSERS
from trainprobe.facts.rows import fact_types, facts_from_rows
from trainprobe.facts.steps import steps_printed
from trainprobe.model.evidence import Evidence
from trainprobe.model.facts import Fact
from trainprobe.model.fields import UnreadableError
from trainprobe.model.subjects import Subject

C10D = SITE + "torch/distributed/distributed_c10d.py"


def only(facts: Facts, kind: type[Any]) -> Any:
    (found,) = facts.of(kind)
    return found


def test_plan_script_and_rung() -> None:
    plan = {
        "command": "diagnose",
        "nproc": 4,
        "backend": "gloo",
        "device": "cpu",
        "form": "launch",
        "argv": ["a.py"],
        "interpreter": {"path": "/env/bin/python", "version": "3.11", "torch": None},
    }
    facts = (
        Records("")
        .add("plan", plan)
        .add("script", {"path": "a.py", "imports": ["torch"], "syntax_error": None})
        .facts()
    )
    found = only(facts, Plan)
    assert (
        found.nproc,
        found.world_size,
        found.form,
        found.argv,
        found.python_version,
        found.torch_version,
    ) == (4, 4, "launch", ("a.py",), "3.11", "")
    assert only(facts, Script).imports == ("torch",)
    measure = {"name": "latency", "value": 3, "unit": "us", "size_bytes": 8}
    rung = {
        "rung": 40,
        "probe": "gloo_control",
        "outcome": "failed",
        "ranks": [1, "x", 2],
        "measures": [measure, {"name": "bad"}],
        "cell": "gloo_control@4",
        "nproc": 4,
    }
    found = only(Records("gloo_control@4").add("rung", rung).facts(), Rung)
    assert (
        found.cell,
        found.outcome,
        found.ranks,
        len(found.measures),
        found.measures[0].extra,
    ) == ("gloo_control@4", "failed", (1, 2), 1, {"size_bytes": 8})


def test_a_probe_s_events() -> None:
    records = Records("gloo_control@2").events(
        {"event": "phase.begin", "name": "init", "at": 1.0},
        {"event": "phase.end", "name": "init", "at": 2.0, "took_s": 1.0},
        {"event": "phase.begin", "name": "barrier", "at": 3.0},
        {"event": "measure", "name": "latency", "value": 2.5, "unit": "us", "size_bytes": 1024},
        {"event": "measure", "name": "latency", "value": "much"},
        {"event": "fail", "says": "Wrong sum.", "expected": 3, "got": 4},
        {"event": "result", "answer": "no", "says": "Sums are wrong."},
        rank=1,
        bad_lines=2,
    )
    facts = records.facts()
    result = only(facts, ProbeResult)
    assert (
        result.probe,
        result.rank,
        result.answer,
        result.open_phase,
        result.open_since,
        result.bad_lines,
    ) == ("gloo_control", 1, "no", "barrier", 3.0, 2)
    assert [(one.value, one.labels) for one in facts.of(Measured)] == [(2.5, {"size_bytes": 1024})]
    failure = only(facts, ProbeFailure)
    assert (failure.says, failure.phase, failure.details) == (
        "Wrong sum.",
        "barrier",
        {"expected": 3, "got": 4},
    )


def test_checks_and_imports() -> None:
    tried = {
        "event": "fail",
        "name": "import",
        "module": "flash_attn",
        "how": "together",
        "outcome": "oom_killed",
        "rank": 2,
        "frames": [{"file": "/a.py", "line": 1, "function": "f"}],
        "cgroup_oom_rise": 1,
    }
    passed = {
        "event": "note",
        "name": "import",
        "module": "torch",
        "how": "alone",
        "outcome": "passed",
        "took_s": 1.5,
        "rss_bytes": 10,
        "touched_cuda": False,
    }
    facts = (
        Records("import_memory@1")
        .events(tried, passed, {"event": "note", "name": "import", "outcome": "odd"})
        .facts()
    )
    first, second = facts.of(ImportTried)
    assert (first.module, first.rank, first.outcome, first.oom_rise, first.frames[0].where) == (
        "flash_attn",
        2,
        "oom_killed",
        1,
        "a.py:1 in f",
    )
    assert (second.how, second.took_s, second.touched_cuda) == ("alone", 1.5, False)
    facts = (
        Records("host@1")
        .events(
            {
                "event": "fail",
                "check": "shm.size",
                "status": "fail",
                "value": [64, 0],
                "says": "Full.",
                "fix": "more",
            }
        )
        .facts()
    )
    check = only(facts, HostCheck)
    assert (check.name, check.status, check.value, check.fix, check.probe) == (
        "shm.size",
        "fail",
        "[64, 0]",
        "more",
        "host",
    )


def test_main_threads_over_two_looks() -> None:
    waiting = (
        ("all_reduce", C10D, 3252),
        ("_exception_logger.<locals>.wrapper", SITE + "torch/distributed/c10d_logger.py", 83),
        ("train", "/job/train.py", 88),
        ("<module>", "/job/train.py", 99),
    )
    records = (
        Records()
        .stack(0, *waiting)
        .stack(0, *waiting, look=2)
        .stack(1, ("train", "/job/train.py", 24), pid=101)
    )
    sleeping = {
        "tid": 101,
        "state": "S",
        "wchan": "hrtimer_nanosleep",
        "syscall": "230 0x0",
        "cpu_ticks": 7,
    }
    records.add(
        "process",
        {
            "look": 1,
            "pid": 101,
            "role": "rank",
            "state": "S",
            "ppid": 1,
            "threads": [sleeping, {"tid": 102}],
            "rss_bytes": 5,
        },
        rank=1,
    )
    records.add(
        "process",
        {
            "look": 2,
            "pid": 101,
            "role": "rank",
            "state": "T",
            "threads": [{**sleeping, "cpu_ticks": 9}],
            "rss_bytes": 4,
        },
        rank=1,
    )
    facts = records.facts()
    first, second = facts.of(MainThread)
    assert (
        first.rank,
        first.leaf,
        first.op,
        first.where,
        first.moved,
        first.looks,
        first.evidence,
    ) == (
        0,
        "comm-wait",
        "all_reduce",
        "train.py:88 in train",
        False,
        2,
        ("E1", "E2"),
    )
    assert [frame.name for frame in first.frames][:2] == ["<module>", "train"]
    assert (second.rank, second.leaf, second.moved) == (1, "sleep", None)
    process = only(facts, ProcessState)
    assert (
        process.state,
        process.cpu_moved,
        process.stopped_looks,
        process.looks,
        process.rss_bytes,
        process.threads,
    ) == ("T", True, 1, 2, 5, 1)
    assert [thread.leaf for thread in facts.of(Thread, rank=0)] == ["comm-wait", "comm-wait"]


def test_the_line_s_text_tells_where_the_stack_cannot() -> None:
    site = {
        "file": "/job/train.py",
        "sites": [
            {
                "line": 24,
                "function": "train",
                "text": "work.wait()",
                "blocks": [{"kind": "if", "line": 20, "text": "if rank == 0:", "branch": "body"}],
                "skips": [{"line": 18, "text": "if bad:", "how": "continue", "loop": 9}],
            }
        ],
    }
    facts = Records().stack(0, ("train", "/job/train.py", 24)).add("source", site).facts()
    assert (only(facts, MainThread).leaf, only(facts, MainThread).op) == ("comm-wait", "wait")
    assert only(facts, SourceSite).blocks[0].text == "if rank == 0:"
    assert only(facts, SourceSite).skips == (Skip(18, "if bad:", "continue", 9, "body"),)


def test_progress_of_witness_and_output() -> None:
    start, first = (
        {"event": "note", "name": "start", "at": 1001.0, "pid": 7, "world_size": 2},
        {"event": "note", "name": "loader.first_batch", "at": 1002.0, "pid": 7},
    )
    leave = {
        "event": "note",
        "name": "exit",
        "at": 1004.0,
        "pid": 7,
        "optimizer_steps": 3,
        "batches": 4,
        "torch_imported": True,
        "code": None,
    }
    records = Records().events(
        start,
        first,
        {"event": "note", "name": "step", "optimizer_steps": 2, "pid": 7},
        leave,
        rank=0,
    )
    records.printed(
        "step 0: loss 0.5\nstep 1: loss 0.4\n",
        rank=0,
        stream="stdout",
        first_at=1002.5,
        last_at=1003.0,
    ).ended(0, 1004.5, code=0)
    one = only(records.facts(), Progress)
    assert (
        one.optimizer_steps,
        one.batches,
        one.output_steps,
        one.loader_empty,
        one.exited_by_itself,
        one.world_size,
    ) == (3, 4, 2, False, True, 2)
    assert (one.first_output_s, one.silent_s, one.witness) == (2.5, 1.5, True)
    assert Records().events(start, leave, role="launcher").facts().of(Progress) == (), (
        "a launcher's zero is nobody's"
    )
    empty = (
        Records()
        .events(
            start, {"event": "note", "name": "loader.empty", "dataset_len": 0, "pid": 7}, rank=1
        )
        .facts()
    )
    assert (
        only(empty, Progress).loader_empty,
        only(empty, Progress).dataset_len,
        only(empty, Progress).exited_by_itself,
    ) == (True, 0, None)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("step 3", 3),
        ("Step: 3/100", 3),
        ("iter 10 loss 2.5", 10),
        ("step=0 loss=0.3179\nstep=1 loss=0.3", 2),
        (" 10%|█         | 10/100 [00:01<00:09, 9.9it/s]", 10),
        ("0it [00:00, ?it/s]", 0),
        ("{'loss': 2.31, 'epoch': 0.1}\n{'loss': 2.30, 'epoch': 0.2}", 2),
        ("finished after 0 steps", 0),
        ("epoch 0 done\nepoch 1 done", None),
        ("Total optimization steps = 500\nmax_steps: 100", None),
        ("loading 3 shards\nlistening on port 29500", None),
        ("saving every 10 steps", None),
        ("", None),
    ],
)
def test_steps_in_print(text: str, steps: int | None) -> None:
    assert steps_printed(text) == steps


def test_output_is_put_together_from_its_ends() -> None:
    data = {
        "stream": "stdout",
        "bytes": 9_000_000,
        "head": "step 1\nste",
        "tail": "p 2\nCUDA out of memory. Tried to allocate 2.00 GiB\n",
        "left_out_bytes": 0,
    }
    facts = Records().add("output", data, rank=0).facts()
    assert only(facts, Progress).output_steps == 2
    event = only(facts, LogEvent)
    assert (event.event, event.captured, event.rank, event.stream) == (
        "cuda-oom",
        {"asked": "2.00 GiB"},
        0,
        "stdout",
    )
    assert only(facts, Output).bytes == 9_000_000
    facts = Records().add("output", {**data, "left_out_bytes": 5}, rank=0).facts()
    assert only(facts, Progress).output_steps == 1


def test_memory_kernel_locks_and_gpus() -> None:
    records = Records().add(
        "cgroup",
        {
            "version": 2,
            "limit_bytes": 100,
            "current_bytes": 10,
            "peak_bytes": 20,
            "oom_kill": 3,
            "when": "before",
        },
    )
    records.add(
        "cgroup",
        {
            "version": 2,
            "limit_bytes": 100,
            "current_bytes": 90,
            "peak_bytes": 100,
            "oom_kill": 4,
            "oom_kill_rise": None,
        },
    )
    killed = (
        "Memory cgroup out of memory: Killed process 77 (python) total-vm:9kB, anon-rss:2048kB,"
        " file-rss:0kB"
    )
    crashed = "python[78]: segfault at 0 ip 00007f sp 00007f error 4 in libdecode.so[7f0000+1000]"
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    records.add(
        "kernel_log",
        {
            "lines": [
                {"at": 5.0, "text": killed},
                {"at": 6.0, "text": crashed},
                {"at": None, "text": xid},
                {"at": 1, "text": "eth0 up"},
            ]
        },
    )
    records.add(
        "locks",
        {
            "held": [{"kind": "FLOCK", "pid": 5, "device": "08:01", "inode": 9, "path": "/x.lock"}],
            "waiting": [{"pid": 6, "behind_pid": 5, "device": "08:01", "inode": 9}],
        },
    )
    records.add(
        "gpus",
        {
            "driver": "570",
            "devices": [
                {
                    "index": 0,
                    "name": "H",
                    "memory_total_bytes": 8,
                    "processes": [{"pid": 3, "used_bytes": None}],
                }
            ],
        },
    )
    facts = records.facts()
    limit = only(facts, MemoryLimit)
    assert (limit.peak_bytes, limit.current_bytes, limit.oom_kill_rise) == (100, 90, 1)
    kill = only(facts, OomKill)
    assert (kill.pid, kill.name, kill.rss_bytes, kill.in_cgroup, kill.at) == (
        77,
        "python",
        2048 * 1024,
        True,
        5.0,
    )
    assert (only(facts, Segfault).pid, only(facts, Segfault).library) == (78, "libdecode.so")
    assert (only(facts, Xid).code, only(facts, Xid).device) == (79, "PCI:0000:3b:00")
    lock = only(facts, LockWait)
    assert (lock.pid, lock.holder_pid, lock.path) == (6, 5, "/x.lock")
    assert (only(facts, Gpu).driver, only(facts, Gpu).processes[0].pid) == ("570", 3)


def test_what_was_looked_at_and_what_was_refused() -> None:
    records = (
        Records()
        .stack(0, ("f", "/job/a.py", 1))
        .add("kernel_log", {}, outcome="denied", reason="not root")
        .add("gpus", {"devices": "x"})
    )
    facts = records.facts()
    assert facts.looked("stacks.python")
    assert facts.looked("stacks.python", cell=CELL, rank=0)
    assert not facts.looked("stacks.python", rank=1)
    assert not facts.looked("kernel_log")
    assert [
        (refusal.kind, refusal.outcome, refusal.reason, refusal.evidence)
        for refusal in facts.refused()
    ] == [("kernel_log", "denied", "not root", "E2")]
    assert facts.refused("gpus") == ()
    assert facts.unreadable == ("E3",)
    assert not facts.looked("gpus"), "an unreadable answer is no look"
    assert facts.cells() == (CELL,)


def test_facts_from_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"RankEnding": {"rank": 1, "how": "exited", "code": 0, "cell": CELL}},
        {"MainThread": {"rank": 0, "frames": [{"name": "f", "file": "/a.py", "line": 3}]}},
        {"looked": "stacks.python", "cell": CELL, "rank": 0},
        {"refused": "kernel_log", "outcome": "denied", "reason": "not root"},
    ]
    facts = facts_from_rows(rows)
    assert only(facts, MainThread).frames[0].line == 3
    assert facts.looked("stacks.python", rank=0)
    assert facts.refused()[0].reason == "not root"
    slips: list[dict[str, Any]] = [
        {"Nothing": {}},
        {"RankEnding": {"rnk": 1}},
        {"MainThread": {"frames": [{"lin": 1}]}},
        {"looked": "x", "why": 1},
        {"RankEnding": {"rank": "x"}},
        {"RankEnding": []},
    ]
    for row in slips:
        with pytest.raises(ValueError, match=r"\S"):
            facts_from_rows([row])


def test_every_fact_is_exported_and_has_defaults() -> None:
    for name, kind in fact_types().items():
        assert getattr(names, name) is kind
        assert kind() == kind()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=6,
)
FIELDS = (
    "how code signal at pid role look threads frames name file line text head tail stream bytes"
    " events event message extraInfo py_callstack timestamp lines held waiting devices sites blocks"
    " cell calls op"
)
FIELDS += (
    " answer module outcome check status thread type during_import handling where left_out_bytes"
    " optimizer_steps probe measures value interpreter limit_bytes peak_bytes index processes"
    " oom_kill"
)
WORDS = [
    "note",
    "fail",
    "result",
    "measure",
    "phase.begin",
    "phase.end",
    "start",
    "step",
    "exit",
    "leave",
    "exception",
    "import",
    "exited",
    "signalled",
    "yes",
    "passed",
    "MainThread",
    traceback_of("KeyError", "x"),
]
LIKELY = st.recursive(
    st.sampled_from(WORDS) | st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=8)
    ),
    max_leaves=15,
)
DATA = st.dictionaries(st.sampled_from(FIELDS.split()), JSON | LIKELY, max_size=7)
SUBJECT = st.builds(
    Subject,
    st.just("rank"),
    rank=st.none() | st.integers(0, 2),
    pid=st.none() | st.integers(1, 3),
    role=st.sampled_from(["", "rank", "launcher"]),
)
RECORD = st.builds(
    Evidence,
    st.sampled_from(["E1", "E2", "E3"]),
    st.sampled_from([*PARSERS, "unheard-of"]),
    SUBJECT,
    st.sampled_from(["", CELL]),
    data=DATA,
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RECORD)
def test_a_parser_raises_nothing_but_that_it_cannot_read(record: Evidence) -> None:
    """`read` would catch anything; what it catches should be meant."""
    for parse in PARSERS.get(record.kind, ()):
        try:
            parse(record)
        except UnreadableError:
            continue


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RECORD, max_size=5))
def test_no_evidence_breaks_the_reading(evidence: list[Evidence]) -> None:
    facts = read(evidence)
    assert set(facts.unreadable) <= {record.id for record in evidence}
    for fact in facts.all:
        assert set(fact.evidence) <= {record.id for record in evidence}
        hash(fact.rank)


def test_reading_twice_gives_the_same() -> None:
    records = Records().printed(traceback_of("KeyError", "x"), rank=0).ended(0, 1.0, code=1)
    assert read(records.evidence).all == read(records.evidence).all


def test_a_waited_for_path_beside_the_output_of_a_file_is_no_place_of_output() -> None:
    records = Records()
    for tail in ("first", "again"):
        data = {"stream": "both", "head": tail, "path": "/job/rank0.log"}
        records.add("output", data, rank=0)
    path = {"path": "/job/ckpt.pt", "exists": False}
    records.add("awaited", {"pid": 7, "file": "/job/a.py", "line": 3, "path": path}, rank=1)

    facts = records.facts()

    assert (only(facts, Output).evidence, facts.unreadable) == (("E2",), ())


def test_a_join_that_fails_costs_only_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    def join_nothing(facts: list[Fact]) -> list[Fact]:
        raise KeyError(len(facts))

    monkeypatch.setattr(reading, "JOINS", (join_nothing, *reading.JOINS))
    facts = Records().add("output", {"stream": "both", "head": "x"}, rank=0).facts()

    assert (len(facts.of(Output)), facts.unreadable) == (1, ("all that join_nothing adds",))
