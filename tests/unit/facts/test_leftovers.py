"""Earlier runs in the facts: what is said of them, what ends them, and when they are a trouble
and not only a warning.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.facts.records import Records, traceback_of
from trainprobe import causes
from trainprobe.causes.priors import load_priors
from trainprobe.facts import Facts, HostCheck, Leftover, OtherRun, Restarter
from trainprobe.facts.leftover_names import commands, restarted_by, sum_of
from trainprobe.judge import judge
from trainprobe.model.diagnosis import Diagnosis

GIB = 2**30
PLAN = {
    "command": "diagnose",
    "nproc": 1,
    "world_size": 1,
    "form": "command",
    "argv": ["torchrun", "train.py"],
    "cwd": "/job",
    "script": "/job/train.py",
}


def process(pid: int, **more: Any) -> dict[str, Any]:
    return {
        "pid": pid,
        "ppid": 1,
        "run": 0,
        "role": "main",
        "sure": True,
        "state": "S",
        "age_s": 700.0,
        "command": "python train.py",
        "pss_bytes": 2**20,
        **more,
    }


def case(
    *processes: dict[str, Any],
    port: int | None = 29500,
    restarters: tuple[dict[str, Any], ...] = (),
    others: tuple[dict[str, Any], ...] = (),
) -> Records:
    """The look before the climb, with 16 GiB and 4 CPUs."""
    records = Records("")
    records.add("plan", PLAN)
    data = {
        "program": {"kind": "script", "name": "/job/train.py"},
        "needs": {"port": port},
        "memory": {"limit_bytes": 16 * GIB},
        "cpus": 4.0,
    }
    records.add(
        "leftovers",
        {
            **data,
            "processes": list(processes),
            "restarters": list(restarters),
            "others": list(others),
        },
    )
    records.cell = "user_script@1"
    return records


def rung(records: Records, outcome: str = "passed") -> Records:
    data = {
        "rung": 100,
        "probe": "user_script",
        "cell": "user_script@1",
        "nproc": 1,
        "outcome": outcome,
        "says": "" if outcome == "passed" else "rank 0 ended with exit code 1",
    }
    return records.add("rung", data)


def crashed(records: Records, *says: str) -> Facts:
    records.ended(0, 1001.0, code=1).printed(traceback_of(*says), rank=0)
    return rung(records, "crashed").facts()


def judged(facts: Facts) -> Diagnosis:
    return judge(facts, causes.built(), load_priors())


def test_a_look_becomes_facts_and_one_check() -> None:
    loop = {"kind": "shell", "name": "bash run.sh", "pid": 90, "seen_again": True}
    other = {
        "pid": 200,
        "state": "S",
        "command": "python train.py",
        "why": "the terminal of pid 80 (bash) is open",
    }
    records = case(
        process(311, ports=[29500]),
        process(312, locks=["/job/a.lock"]),
        restarters=(loop,),
        others=(other,),
    )
    records.add(
        "probe.events",
        {
            "events": [
                {"event": "note", "check": "host.leftovers", "status": "ok", "says": "none"}
            ],
            "bad_lines": 0,
        },
        role="probe",
    )
    facts = records.facts()
    assert [(row.pid, row.ports, row.locks) for row in facts.of(Leftover)] == [
        (311, (29500,), ()),
        (312, (), ("/job/a.lock",)),
    ]
    assert facts.of(Restarter)[0].seen_again
    assert facts.of(OtherRun)[0].pid == 200
    checks = facts.of(HostCheck)
    assert [(one.name, one.status) for one in checks] == [
        ("host.leftovers", "warn"),
        ("host.other-run", "warn"),
    ]
    assert checks[0].fix == "kill 90; kill 311 312"
    assert "started it again while we looked" in checks[0].says


def test_words_and_commands_name_what_is_held_and_the_right_order() -> None:
    rows = [
        Leftover(pid=311, run=0, age_s=720.0, pss_bytes=GIB, ports=(29500,), gpus=((0, 3 * GIB),)),
        Leftover(
            pid=312,
            run=0,
            age_s=719.0,
            pss_bytes=GIB,
            cpu_share=1.5,
            shm_bytes=40 * 2**20,
            state="T",
        ),
        Leftover(pid=313, run=1, age_s=9000.0, rss_bytes=GIB, sure=False),
    ]
    said = sum_of(rows)
    assert said.startswith(
        "3 processes (pids 311-313, of 2 runs started 12 min, 2 h ago) hold 3.0 GiB of memory, 1.5"
        " CPUs, 3.0 GiB of GPU 0, port 29500 and 40 MiB"
    )
    assert sum_of(rows[:1]).startswith("1 process (pid 311, started 12 min ago) holds")
    restarters = [
        Restarter(kind="user-unit", name="nightly.service"),
        Restarter(kind="parent", name="python watchdog.py", pid=90),
    ]
    assert commands(rows, restarters) == (
        "systemctl --user stop nightly.service",
        "kill 90",
        "kill 311 312",
        "kill -CONT 312   (they are stopped, and end when they go on)",
    )
    assert "nightly.service starts it again" in restarted_by(restarters[0])


@pytest.mark.parametrize(
    ("held", "says"),
    [
        ({"ports": [29500]}, "port 29500"),
        ({"pss_bytes": 5 * GIB}, "31% of the memory"),
        ({"cpu_share": 3.9}, "3.9 of 4 CPUs"),
        ({"locks": ["/job/cache/ds.lock"]}, "/job/cache/ds.lock"),
    ],
)
def test_what_the_next_run_needs_is_a_trouble_also_where_all_passed(
    held: dict[str, Any], says: str
) -> None:
    found = judged(rung(case(process(311, **held))).facts())
    assert (found.verdict, found.causes[0].id, found.causes[0].named) == (
        "at-risk",
        "leftover-processes",
        True,
    )
    assert says in found.causes[0].summary
    assert found.causes[0].pids == (311,)


@pytest.mark.parametrize(
    "held",
    [{}, {"ports": [4000]}, {"pss_bytes": GIB}, {"cpu_share": 0.1}, {"locks": ["/var/lib/other"]}],
)
def test_idle_ones_are_a_warning(held: dict[str, Any]) -> None:
    found = judged(rung(case(process(311, **held))).facts())
    assert (found.verdict, found.causes) == ("healthy", ())
    assert [one.check for one in found.warnings] == ["host.leftovers"]


def test_a_port_that_they_hold_is_named_before_the_port_itself() -> None:
    error = (
        "torch.distributed.DistNetworkError",
        (
            "The server socket has failed to listen on any local network address. port: 29500,"
            " code: -98, name: EADDRINUSE"
        ),
    )
    found = judged(crashed(case(process(311, ports=[29500])), *error))
    assert (found.verdict, found.causes[0].id, found.causes[0].named) == (
        "crashed",
        "leftover-processes",
        True,
    )
    elsewhere = judged(crashed(case(process(311, ports=[4000])), *error))
    assert elsewhere.causes[0].id == "port-in-use"
    nobody = judged(crashed(case(), *error))
    assert nobody.causes[0].id == "port-in-use"
    assert "leftover-processes" not in [one.id for one in nobody.causes if one.named]


def spawned(pid: int, **more: Any) -> dict[str, Any]:
    return process(
        pid,
        role="worker",
        sure=False,
        command="python -c from multiprocessing.spawn import spawn_main; spawn_main()",
        **more,
    )


def test_of_a_run_known_by_its_folder_all_are_ended_where_one_holds_what_this_run_failed_of() -> (
    None
):
    tracker = spawned(300) | {"role": "tracker"}
    lost = (
        tracker,
        spawned(302, ports=[29500]),
        spawned(301),
        spawned(312, ppid=302),
        spawned(311, ppid=301),
        spawned(400, run=1),
    )
    error = (
        "torch.distributed.DistNetworkError",
        (
            "The server socket has failed to listen on any local network address. port: 29500,"
            " name: EADDRINUSE"
        ),
    )
    cause = judged(crashed(case(*lost), *error)).causes[0]
    assert cause.id == "leftover-processes"
    steps = {one.title: one.steps for one in cause.fixes}
    assert steps["End them"] == ("kill 302 301 312 311 300",)
    assert steps["Look at those that only share the folder"] == (
        "ps -o pid,ppid,lstart,cmd -p 400",
    )


def test_what_is_known_by_its_folder_alone_is_shown_and_not_ended() -> None:
    facts = rung(case(spawned(301, pss_bytes=9 * GIB))).facts()
    cause = judged(facts).causes[0]
    assert (cause.id, [one.title for one in cause.fixes]) == (
        "leftover-processes",
        ["See what they are", "Look at those that only share the folder"],
    )
    assert all(one.steps for one in cause.fixes)
    assert [one.fix for one in facts.of(HostCheck)] == ["ps -o pid,ppid,lstart,cmd -p 301"]


def test_launchers_end_before_ranks_and_ranks_before_what_is_left() -> None:
    rows = [
        Leftover(pid=310, role="main", run=0),
        Leftover(pid=311, ppid=310, role="worker", run=0),
        Leftover(pid=312, ppid=310, role="tracker", run=0),
        Leftover(pid=320, role="launcher", run=1),
        Leftover(pid=321, ppid=320, role="child", run=1),
    ]
    assert commands(rows, [Restarter(kind="shell", name="bash run.sh", pid=90)]) == (
        "kill 90",
        "kill 320 310 321 311 312",
    )


def test_memory_that_they_hold_is_named_before_the_want_of_it() -> None:
    found = judged(
        crashed(
            case(process(311, pss_bytes=12 * GIB)),
            "RuntimeError",
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.",
        )
    )
    assert found.causes[0].id == "leftover-processes"
    little = judged(
        crashed(
            case(process(311, pss_bytes=GIB)),
            "RuntimeError",
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.",
        )
    )
    assert little.causes[0].id != "leftover-processes"


def test_a_lock_that_they_hold_is_named_before_the_lock_itself() -> None:
    error = ("filelock._error.Timeout", "The file lock '/job/a.lock' could not be acquired.")
    assert (
        judged(crashed(case(process(311, locks=["/job/a.lock"])), *error)).causes[0].id
        == "leftover-processes"
    )
    assert (
        judged(crashed(case(process(311, locks=["/job/b.lock"])), *error)).causes[0].id
        == "file-lock-held"
    )


def test_another_failure_is_not_laid_at_their_door() -> None:
    found = judged(
        crashed(
            case(process(311, ports=[29500], pss_bytes=8 * GIB)), "ValueError", "shapes do not fit"
        )
    )
    assert found.causes[0].id == "user-exception"


def test_of_a_climb_that_was_taken_up_again_the_last_look_counts() -> None:
    records = case(process(311))
    records.cell = ""
    records.add(
        "leftovers",
        {
            "program": {"kind": "script", "name": "/job/train.py"},
            "needs": {"port": None},
            "processes": [],
            "restarters": [],
            "others": [],
        },
    )
    facts = records.facts()
    assert facts.of(Leftover) == ()
    assert [one.status for one in facts.of(HostCheck)] == ["ok"]
