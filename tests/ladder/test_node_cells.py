"""Cells over several nodes, which are processes of this machine here: each is one `climb-here`,
led from this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.ladder.conftest import Climb
from tests.ladder.test_interruption import send_when
from trainprobe.ladder import node_team
from trainprobe.nodes.transports import Way

NAMES = ("localhost", "other")
MARK = f"test-{os.getpid()}-{time.monotonic_ns()}"
# The `climb-here` above a probe: the keeper's parent.
LEADER = """
keeper = os.getppid()
leader = int(open(f"/proc/{keeper}/stat").read().rpartition(")")[2].split()[1])
"""
YES = "say('result', answer='yes', says='It works.')\n"


def way_of(*names: str) -> Way:
    """Each node by its name is a process here that knows that name as its HOSTNAME."""
    return Way("here", names, lambda name, argv, _: ("env", f"HOSTNAME={name}", *argv))


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may climb on this machine, too."""
    monkeypatch.setenv("CLIMBED_BY", MARK)


def here(text: str) -> list[int]:
    """The processes of this test with `text` on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                ours = f"CLIMBED_BY={MARK}".encode() in (entry / "environ").read_bytes()
                if ours and text in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(
                    "utf-8", "replace"
                ):
                    found.append(int(entry.name))
    return found


def test_a_probe_of_the_host_runs_on_each_node_with_the_callers_environment_and_no_secret_on_disk_or_command_lines(
    probe: Climb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "temporary"
    own.mkdir()
    for name, value in {
        "TMPDIR": str(own),
        "MY_API_TOKEN": "zq7-very-secret-91",
        "PLAIN": "kept",
    }.items():
        monkeypatch.setenv(name, value)
    body = f"""
    import glob, pathlib
    node, token = os.environ["HOSTNAME"], os.environ["MY_API_TOKEN"]
    def holds(path):
        try:
            return token.encode() in pathlib.Path(path).read_bytes()
        except OSError:
            return False
    files = [str(path) for path in pathlib.Path({str(own)!r}).rglob("*") if path.is_file() and holds(path)]
    lines = [path for path in glob.glob("/proc/[0-9]*/cmdline") if holds(path)]
    told = " ".join([node, os.environ["PLAIN"], os.getcwd(), *files, *lines])
    say("result", answer="no" if node == "other" else "yes", says=told)
    """
    done = probe(body, way=way_of(*NAMES), nodes=NAMES)

    rungs = {cell: done.rung(cell) for cell in ("mine@localhost", "mine@other")}
    assert {cell: (row["outcome"], row["hosts"]) for cell, row in rungs.items()} == {
        "mine@localhost": ("passed", ["localhost"]),
        "mine@other": ("failed", ["other"]),
    }
    assert (
        rungs["mine@other"]["says"] == f"other kept {Path.cwd()}"
    )  # no file and no command line held the secret
    assert {one.subject.host for one in done.of("rank.ended")} == set(NAMES)
    assert not here("climb-here")
    assert not list(own.iterdir())


def test_ranks_go_over_nodes_and_the_one_that_fails_is_known_by_its_number_in_the_world(
    probe: Climb,
) -> None:
    body = """
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "HOSTNAME")
    say("note", says=" ".join(os.environ[name] for name in names), port=os.environ["MASTER_PORT"])
    if rank == 3:
        os.abort()
    time.sleep(600)
    """
    began = time.monotonic()
    done = probe(body, scope="ranks", timeout_s=60, way=way_of(*NAMES), nodes=NAMES)

    rung = done.rung("mine@4")
    assert (rung["outcome"], rung["ranks"], rung["hosts"]) == ("crashed", [3], list(NAMES))
    assert time.monotonic() - began < 30  # the others were not waited for until their deadline
    notes = [
        event
        for one in done.of("probe.events", "mine@4")
        for event in one.data["events"]
        if event["event"] == "note"
    ]
    assert sorted(note["says"] for note in notes) == [
        "0 0 4 2 0 2 localhost localhost",
        "1 1 4 2 0 2 localhost localhost",
        "2 0 4 2 1 2 localhost other",
        "3 1 4 2 1 2 localhost other",
    ]
    assert len({note["port"] for note in notes}) == 1
    assert {one.subject.rank: one.subject.host for one in done.of("rank.ended", "mine@4")} == {
        0: "localhost",
        1: "localhost",
        2: "other",
        3: "other",
    }
    assert done.endings("mine@4")[0]["by_us"]
    assert {one.subject.rank for one in done.of("stacks.python", "mine@4")} == {0, 1, 2}


@pytest.mark.soak
def test_a_node_that_freezes_is_lost_and_told_once(
    probe: Climb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_team, "SILENT_S", 3.0)
    body = LEADER + "if rank == 1:\n    os.kill(leader, 19)\ntime.sleep(600)\n"
    done = probe(body, scope="ranks", nproc=1, timeout_s=60, way=way_of(*NAMES), nodes=NAMES)

    assert done.outcomes() == {"mine@2": "timed_out"}
    assert (done.rung("mine@2")["ranks"], done.rung("mine@2")["says"]) == (
        [1],
        "other has been silent for 3 s",
    )
    assert [(one.subject.host, one.outcome) for one in done.of("node.look")] == [
        ("other", "timed_out")
    ]
    assert {one.subject.rank for one in done.of("stacks.python", "mine@2")} == {0}
    assert not here("climb-here")


@pytest.mark.soak
def test_a_node_whose_part_is_killed_is_named(probe: Climb) -> None:
    body = LEADER + "if rank == 1:\n    os.kill(leader, 9)\ntime.sleep(600)\n"
    done = probe(body, scope="ranks", nproc=1, timeout_s=60, way=way_of(*NAMES), nodes=NAMES)

    assert (done.rung("mine@2")["outcome"], done.rung("mine@2")["ranks"]) == ("timed_out", [1])
    assert [one.subject.host for one in done.of("node.look")] == ["other"]


@pytest.mark.soak
@pytest.mark.parametrize("scope", ["host", "ranks"])
def test_ctrl_c_ends_every_node(probe: Climb, tmp_path: Path, scope: str) -> None:
    ready = tmp_path / "ready"
    sender = threading.Thread(target=send_when, args=(ready, signal.SIGINT))
    sender.start()
    done = probe(
        f"open({str(ready)!r}, 'w').close()\ntime.sleep(600)\n",
        scope=scope,
        timeout_s=60,
        way=way_of(*NAMES),
        nodes=NAMES,
    )
    sender.join()

    assert done.interrupted
    assert set(done.outcomes().values()) == {"not_measured"}
    assert not here("climb-here")
    assert not here(str(tmp_path / "probes"))


@pytest.mark.soak
def test_a_script_over_nodes_shows_who_left_first(script: Climb) -> None:
    body = """
    import os, sys, time
    rank = int(os.environ["RANK"])
    for step in range(400):
        print("step", step, flush=True)
        if rank == 1 and int(os.environ["WORLD_SIZE"]) > 1 and step == 4:
            sys.exit(3)
        time.sleep(0.05)
    """
    done = script(body, nproc=1, way=way_of(*NAMES), nodes=NAMES)

    assert done.outcomes() == {"user_script@1": "passed", "user_script@2": "crashed"}
    assert (done.rung("user_script@2")["ranks"], done.rung("user_script@2")["says"]) == (
        [1],
        "rank 1 ended with exit code 3",
    )
    assert done.endings("user_script@2")[0]["by_us"]


@pytest.mark.soak
def test_a_climb_over_nodes_is_gone_on_with(probe: Climb, tmp_path: Path) -> None:
    probe(YES, way=way_of(*NAMES), nodes=NAMES)
    again = probe(
        "raise SystemExit('asked again')\n",
        way=way_of(*NAMES),
        nodes=NAMES,
        resume=str(tmp_path / "case"),
    )

    assert {one.cell: one.data["outcome"] for one in again.of("rung")} == {
        "mine@localhost": "passed",
        "mine@other": "passed",
    } | {one.cell: "skipped" for one in again.of("rung") if one.data["unmet"] == "asked"}


EVIL = """
import json, sys
def say(**row): print(json.dumps(row), flush=True)
print("Welcome to this node!")
sys.stdin.readline()
say(says="begin", host="x" * 10000, now=float("nan"), port="none")
order = {}
while order.get("do") != "cell":
    order = json.loads(sys.stdin.readline() or "{}")
cell = "mine@other"
record = {"id": "E1", "kind": "rank.ended", "subject": {"kind": "rank", "host": "localhost", "rank": 0, "pid": 1}, "cell": cell, "began": 5.0, "data": {"how": "exited", "code": 1}}
for change in ({}, {"cell": "mine@localhost"}, {"kind": "rung"}, {"kind": "node.look"}, {"began": 1e300}, {"subject": 7}, {"data": []}, {"took_s": "long"}):
    say(record={**record, **change})
say(record=[]); say(says="started", cell=cell); say(says="now", cell=cell, now={"ranks": [[]]}); say(says="looked", cell=cell, seen=[None, {}])
print("[" * 100000); print("{}"); print("\\x1b[2J")
say(says="over", cell=cell, part={"told": {"answers": [{"rank": 0, "answer": "yes", "says": "all is well", "ended": 5}]}})
sys.stdin.read()
"""


@pytest.mark.soak
def test_a_node_that_lies_speaks_for_nobody_else_and_breaks_nothing(probe: Climb) -> None:
    good = way_of(*NAMES)
    way = Way(
        "here",
        NAMES,
        lambda name, argv, talks: (
            (sys.executable, "-c", EVIL) if name == "other" else good.command(name, argv, talks)
        ),
    )
    done = probe(YES, way=way, nodes=NAMES)

    assert (done.rung("mine@localhost")["outcome"], done.rung("mine@other")["outcome"]) == (
        "passed",
        "not_measured",
    )
    assert {one.subject.host for one in done.of("rank.ended", "mine@localhost")} == {"localhost"}
    assert {
        one.subject.host for one in done.evidence if one.cell == "mine@other" and one.kind != "rung"
    } <= {"other"}
    assert json.dumps([dict(one.data) for one in done.evidence]).count("all is well") == 0


@pytest.mark.soak
def test_when_the_leader_is_killed_nothing_of_a_node_stays(tmp_path: Path) -> None:
    folder = tmp_path / "probes"
    folder.mkdir()
    ready = tmp_path / "ready"
    header = (
        "# /// trainprobe\n# rung: 5\n# question: Does it work?\n# scope: host\n# timeout_s: 60\n#"
        " ///\n"
    )
    (folder / "mine.py").write_text(
        f"{header}import time\nopen({str(ready)!r}, 'w').close()\ntime.sleep(600)\n"
    )
    pid = os.fork()
    if pid == 0:
        words = [
            "diagnose",
            "--nodes",
            "localhost",
            "--only",
            "mine",
            "--probe-dir",
            str(folder),
            "--case",
            str(tmp_path / "case"),
            "--quiet",
        ]
        os.execv(sys.executable, [sys.executable, "-m", "trainprobe", *words])
    until = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while (left := [*here("climb-here"), *here(str(folder))]) and time.monotonic() < until:
        time.sleep(0.1)
    assert (ready.exists(), left) == (True, [])
