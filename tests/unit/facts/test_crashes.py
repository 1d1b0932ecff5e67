"""Who ended, how, in which order, and who only echoes it. The texts are those of real runs
(torch 2.13, gloo, three ranks), shortened.
"""

from __future__ import annotations

from tests.unit.facts.records import (
    LEAVING,
    PEER_GONE,
    SIZES_DIFFER,
    TORCHRUN,
    Records,
    traceback_of,
)
from trainprobe.facts import Facts, FatalSignal, LogEvent, MainThread, RankEnding, RankException


def ending(facts: Facts, rank: int) -> RankEnding:
    found = facts.one(RankEnding, rank=rank)
    assert found is not None
    return found


def test_an_echo_may_die_before_the_one_who_began_it() -> None:
    """Rank 0 aborts at once over its echo; rank 1, which raised first, takes longer to leave."""
    records = Records().ended(0, 1005.3, signal=6).ended(1, 1005.5, code=1).ended(2, 1006.0, code=1)
    records.printed(traceback_of("RuntimeError", PEER_GONE, prefix="[rank0]: ") + LEAVING, rank=0)
    records.printed(traceback_of("KeyError", "'label'", prefix="[rank1]: "), rank=1)
    records.printed(traceback_of("RuntimeError", PEER_GONE, prefix="[rank2]: "), rank=2)
    raised = {
        "event": "fail",
        "name": "exception",
        "at": 1005.1,
        "type": "KeyError",
        "message": "'label'",
        "frames": [{"file": "/job/train.py", "line": 9, "function": "main"}],
    }
    records.events(raised, rank=1)
    facts = records.facts()
    assert [(ending(facts, rank).order, ending(facts, rank).echo) for rank in range(3)] == [
        (1, True),
        (0, False),
        (2, True),
    ]
    assert ending(facts, 1).failed_at == 1005.1
    (one,) = facts.of(RankException, rank=1)
    assert (one.type, one.source, one.echo, one.evidence) == (
        "KeyError",
        "witness",
        False,
        ("E7", "E5"),
    )
    (death,) = facts.of(FatalSignal)
    assert (death.rank, death.after_exception, death.echo) == (0, True, True)
    assert [fact.echo_of for fact in facts.of(RankException, rank=2)] == ["connection-closed"]


def test_torchrun_s_mixed_output_is_taken_apart() -> None:
    text = (
        traceback_of("KeyError", "'label'", prefix="[rank1]: ")
        + traceback_of("RuntimeError", PEER_GONE, prefix="[rank0]: ")
        + LEAVING
        + TORCHRUN
    )
    records = Records().printed(text)
    records.ended(None, 1006.2, code=1, role="launcher", pid=8709)
    records.ended(0, 1005.6, signal=6, pid=8711).ended(1, 1005.7, signal=15, pid=8712).ended(
        2, 1005.7, signal=15, pid=8713
    )
    facts = records.facts()
    assert [ending(facts, rank).by_launcher for rank in range(3)] == [False, False, True]
    assert ending(facts, 1).abnormal, "it raised before it was stopped"
    assert not ending(facts, 2).abnormal
    assert ending(facts, 2).order is None
    assert {fact.rank: fact.type for fact in facts.of(RankException) if not fact.echo} == {
        1: "KeyError"
    }
    assert [(fact.rank, fact.echo) for fact in facts.of(FatalSignal)] == [(0, True)]
    failed = [fact.captured for fact in facts.of(LogEvent) if fact.event == "torchrun-failed-rank"]
    assert [(row["rank"], row["exitcode"], row["pid"], row["first"]) for row in failed] == [
        ("1", "-15", "8712", "false"),
        ("0", "-6", "8711", "true"),
    ]
    assert {
        fact.captured["pid"] for fact in facts.of(LogEvent) if fact.event == "launcher-stops"
    } == {"8712", "8713"}


def test_a_death_in_a_launcher_s_output_belongs_to_the_rank_that_died_of_it() -> None:
    records = Records().printed(SIZES_DIFFER).ended(None, 1005.0, code=1, role="launcher")
    records.ended(1, 1004.1, signal=6).ended(0, 1004.2, signal=15).ended(2, 1004.2, signal=15)
    facts = records.facts()
    (death,) = facts.of(FatalSignal)
    assert (death.rank, death.exception, death.echo, death.after_exception) == (
        1,
        "gloo::EnforceNotMet",
        False,
        False,
    )
    (thread,) = facts.of(MainThread)
    assert (thread.rank, thread.source, thread.leaf, thread.op, thread.where) == (
        1,
        "faulthandler",
        "comm-wait",
        "all_reduce",
        "train.py:29 in main",
    )
    assert [ending(facts, rank).by_launcher for rank in (0, 1, 2)] == [True, False, True]


def test_deaths_that_could_be_of_two_ranks_are_given_to_none() -> None:
    facts = (
        Records()
        .printed(SIZES_DIFFER)
        .ended(0, 1004.1, signal=6)
        .ended(1, 1004.1, signal=6)
        .facts()
    )
    assert [fact.rank for fact in facts.of(FatalSignal)] == [None]


def test_ends_within_five_milliseconds_share_a_place() -> None:
    facts = (
        Records()
        .ended(0, 1001.0, code=1)
        .ended(1, 1001.004, code=1)
        .ended(2, 1001.5, code=0)
        .facts()
    )
    assert [ending(facts, rank).order for rank in range(3)] == [0, 0, 2]
    assert [ending(facts, rank).abnormal for rank in range(3)] == [True, True, False]


def test_what_we_ended_has_no_place() -> None:
    facts = Records().ended(0, 1001.0, signal=15, by_us=True).ended(1, 1000.5, signal=9).facts()
    assert [
        (ending(facts, rank).order, ending(facts, rank).by_us, ending(facts, rank).signal_name)
        for rank in (0, 1)
    ] == [
        (None, True, "SIGTERM"),
        (0, False, "SIGKILL"),
    ]


def test_a_kill_from_outside_is_not_the_launcher_s() -> None:
    records = (
        Records()
        .ended(None, 1005.0, code=1, role="launcher", pid=1)
        .ended(1, 1003.0, signal=9, pid=8711)
        .ended(0, 1004.0, signal=15, pid=8712)
    )
    facts = records.printed(TORCHRUN.replace("Root Cause", "")).facts()
    assert [ending(facts, rank).by_launcher for rank in (0, 1)] == [True, False]


def test_who_is_asked_to_stop_in_the_moment_in_which_another_fails_is_stopped_because_of_that() -> (
    None
):
    facts = (
        Records()
        .ended(None, 1005.0, code=1, role="launcher")
        .ended(0, 1003.0, signal=15)
        .ended(1, 1003.001, code=1)
        .ended(2, 1003.0, signal=9)
        .facts()
    )
    assert [ending(facts, rank).by_launcher for rank in range(3)] == [True, False, False]


def test_one_that_was_leaving_by_itself_is_not_killed() -> None:
    """The launcher stops a rank that has come to its end and waits in its own shut-down."""
    records = (
        Records()
        .ended(None, 1005.0, code=1, role="launcher")
        .ended(1, 1004.3, signal=15, pid=8712)
        .ended(2, 1004.2, signal=6)
    )
    records.events(
        {"event": "note", "name": "start", "at": 1001.0, "pid": 8712},
        {
            "event": "note",
            "name": "exit",
            "at": 1003.9,
            "pid": 8712,
            "code": None,
            "optimizer_steps": 5,
        },
        rank=1,
    )
    left = ending(records.facts(), 1)
    assert (
        left.how,
        left.code,
        left.left_by_itself,
        left.by_launcher,
        left.order,
        left.abnormal,
    ) == ("exited", 0, True, False, 0, False)


def test_a_chain_tells_of_its_root() -> None:
    cause = "The above exception was the direct cause of the following exception:"
    text = f"{traceback_of('KeyError', repr('x'), file='/job/data.py', line=4)}\n{cause}\n\n{traceback_of('job.BadSample', 'no x')}"
    (one,) = Records().printed(text, rank=0).ended(0, 1001.0, code=1).facts().of(RankException)
    assert (one.type, one.root_type, one.frames[-1].where) == (
        "job.BadSample",
        "KeyError",
        "data.py:4 in main",
    )


def test_an_echo_on_the_way_out_does_not_hide_the_exception() -> None:
    during = "During handling of the above exception, another exception occurred:"
    text = f"{traceback_of('KeyError', repr('x'))}\n{during}\n\n{traceback_of('RuntimeError', PEER_GONE)}"
    (one,) = Records().printed(text, rank=0).ended(0, 1001.0, code=1).facts().of(RankException)
    assert (one.type, one.echo) == ("KeyError", False)
    text = f"{traceback_of('RuntimeError', PEER_GONE)}\n{during}\n\n{traceback_of('job.Failed', 'training failed')}"
    (one,) = Records().printed(text, rank=0).ended(0, 1001.0, code=1).facts().of(RankException)
    assert (one.type, one.echo) == ("job.Failed", True)


def test_tracebacks_that_were_caught_are_marked() -> None:
    text = traceback_of("ValueError", "retrying") + "step 4\n" + traceback_of("OSError", "gone")
    facts = Records().printed(text, rank=0).ended(0, 1001.0, code=1).facts()
    assert {fact.type: fact.handled for fact in facts.of(RankException)} == {
        "ValueError": True,
        "OSError": False,
    }
    facts = (
        Records()
        .printed(traceback_of("ValueError", "retrying"), rank=0)
        .ended(0, 1001.0, code=0)
        .facts()
    )
    assert [fact.handled for fact in facts.of(RankException)] == [True]
    assert [fact.echo for fact in facts.of(RankEnding)] == [False]


def test_what_the_witness_did_not_see_was_caught() -> None:
    seen = {
        "event": "fail",
        "name": "exception",
        "at": 1000.5,
        "type": "OSError",
        "message": "disk",
        "frames": [],
        "thread": "MainThread",
        "during_import": "numpy",
    }
    facts = (
        Records()
        .printed(traceback_of("ValueError", "retrying"), rank=0)
        .events(seen, rank=0)
        .ended(0, 1001.0, code=1)
        .facts()
    )
    assert {
        fact.type: (fact.handled, fact.module_importing) for fact in facts.of(RankException)
    } == {"OSError": (False, "numpy"), "ValueError": (True, "")}


def test_an_exception_behind_sys_exit_is_found() -> None:
    inner = {
        "type": "KeyError",
        "message": "'label'",
        "frames": [{"file": "/job/train.py", "line": 3, "function": "main"}],
    }
    leave = {
        "event": "note",
        "name": "leave",
        "at": 1000.4,
        "how": "sys.exit",
        "code": 1,
        "where": {"file": "/job/train.py", "line": 7, "function": "main"},
        "handling": inner,
    }
    (one,) = Records().events(leave, rank=0).ended(0, 1001.0, code=1).facts().of(RankException)
    assert (one.type, one.at, one.handled) == ("KeyError", 1000.4, False)


def test_error_files_are_read() -> None:
    body = {
        "message": "KeyError: 'label'",
        "extraInfo": {"py_callstack": traceback_of("KeyError", "'label'"), "timestamp": "1001"},
    }
    (one,) = Records().add("error_file", {"message": body}, rank=1).facts().of(RankException)
    assert (one.rank, one.type, one.message, one.at, one.source) == (
        1,
        "KeyError",
        "'label'",
        1001.0,
        "error-file",
    )
    assert (
        Records()
        .add("error_file", {"path": "/x", "present": False}, rank=1)
        .facts()
        .of(RankException)
        == ()
    )


def test_an_unprefixed_traceback_goes_to_the_only_rank_that_failed() -> None:
    text = traceback_of("ValueError", "bad config")
    facts = (
        Records()
        .printed(text)
        .ended(None, 1002.0, code=1, role="launcher")
        .ended(0, 1001.0, code=0)
        .ended(1, 1001.0, code=1)
        .facts()
    )
    assert [(fact.rank, fact.type) for fact in facts.of(RankException)] == [(1, "ValueError")]
    facts = Records().printed(text).ended(0, 1001.0, code=1).ended(1, 1001.0, code=1).facts()
    assert [fact.rank for fact in facts.of(RankException)] == [None]
