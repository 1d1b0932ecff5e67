"""NCCL's RAS from a server that speaks its protocol, and torch's worker server, a real one where
torch has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import ras, worker_server
from trainprobe.collect.collectors.ras import parse_json, parse_text
from trainprobe.collect.listening import listeners
from trainprobe.collect.members import Member
from trainprobe.facts import FlightDump, RasCommunicator, WorkerServer, read
from trainprobe.model.evidence import Evidence

Start = Callable[..., "subprocess.Popen[bytes]"]

TEXT = """\
NCCL version 2.26.2+cuda12.8 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different AllReduce operation counts
  28 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
COUNTS = {"Broadcast": 0, "Reduce": 0, "AllGather": 3, "ReduceScatter": 0}
STATUS = {
    "init_state": 0,
    "async_error": 0,
    "finalize_called": False,
    "destroy_flag": False,
    "abort_flag": False,
}


def rank(number: int, pid: int, reduced: int) -> dict[str, Any]:
    counts = {**COUNTS, "AllReduce": reduced}
    return {
        "rank": number,
        "host": "10.0.0.1",
        "pid": pid,
        "cuda_dev": 0,
        "nvml_dev": number,
        "status": STATUS,
        "collective_counts": counts,
    }


def document(gone: int = 1) -> dict[str, Any]:
    missing = [
        {
            "rank": 2 + at,
            "host": "10.0.0.2",
            "pid": 9,
            "status": {"unresponsive": True, "considered_dead": False},
        }
        for at in range(gone)
    ]
    communicator = {
        "hash": "0xae94",
        "size": 2 + gone,
        "ranks_count": 2,
        "missing_ranks_count": gone,
        "ranks": [rank(0, 7, 41), rank(1, 8, 40)],
    }
    return {
        "nccl_version": "2.29.1",
        "communicators_count": 1,
        "communicators": [{**communicator, "missing_ranks": missing}],
        "ras": {"timeouts_count": 1},
    }


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[int, list[str]]]]:
    """A thread that speaks RAS: `serve(knows_json, answer)` gives its port and the commands that
    it was sent.
    """
    stopped: list[socket.socket] = []

    def begin(*, knows_json: bool, answer: str, silent: bool = False) -> tuple[int, list[str]]:
        listening = socket.create_server(("127.0.0.1", 0))
        stopped.append(listening)
        heard: list[str] = []

        def run() -> None:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as reader:
                for raw in reader:
                    command = raw.decode().strip()
                    heard.append(command)
                    word = command.lower()
                    if silent:
                        continue
                    if word.startswith("client protocol"):
                        connection.sendall(b"SERVER PROTOCOL 2\n")
                    elif word.startswith("timeout") or (
                        word.startswith("set format") and knows_json
                    ):
                        connection.sendall(b"OK\n")
                    elif word == "status":
                        connection.sendall(answer.encode())
                        return
                    else:
                        connection.sendall(f"ERROR: Unknown command {command}\n".encode())

        threading.Thread(target=run, daemon=True).start()
        return listening.getsockname()[1], heard

    yield begin
    for one in stopped:
        one.close()


def own_member() -> Member:
    return Member(0, os.getpid())


def ask_ras(
    case: Case,
    members: list[Member],
    variables: dict[str, str],
    deadline_s: float | None = None,
) -> list[Evidence]:
    job = JobView(members, {"environment": {"job": variables}})
    return collect(case, ras.COLLECTOR, job, deadline_s)


def test_json_from_a_new_nccl(case: Case, serve: Callable[..., tuple[int, list[str]]]) -> None:
    port, heard = serve(knows_json=True, answer=json.dumps(document()))
    (evidence,) = ask_ras(case, [own_member()], {"NCCL_RAS_ADDR": f"localhost:{port}"})
    assert evidence.outcome == "ok", evidence.reason
    assert heard[0] == "CLIENT PROTOCOL 2"
    assert heard[1] in {"TIMEOUT 1", "TIMEOUT 2"}
    assert heard[2:] == ["SET FORMAT json", "STATUS"]
    (communicator,) = read([evidence]).of(RasCommunicator)
    assert (communicator.size, communicator.lagging, communicator.nccl_version) == (
        3,
        (1,),
        "2.29.1",
    )
    assert communicator.ranks[1].counts["AllReduce"] == 40
    assert (
        communicator.missing[0].number,
        communicator.missing[0].unresponsive,
        communicator.errors,
    ) == (2, True, ("INCOMPLETE",))


def test_the_comma_that_one_version_forgets() -> None:
    text = json.dumps(document(gone=2), indent=1)
    broken = text.replace("},\n    {", "}\n    {")
    assert broken != text
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(broken)
    data = parse_json(broken)
    assert data is not None
    assert [row["rank"] for row in data["communicators"][0]["missing"]] == [2, 3]


def test_text_from_an_old_nccl(case: Case, serve: Callable[..., tuple[int, list[str]]]) -> None:
    port, _ = serve(knows_json=False, answer=TEXT)
    (evidence,) = ask_ras(case, [own_member()], {"NCCL_RAS_ADDR": f"localhost:{port}"})
    assert (evidence.outcome, evidence.data["format"]) == ("ok", "text")
    assert evidence.data["groups"][0]["status"] == "RUNNING"
    assert evidence.data["errors"][0] == {
        "kind": "INCOMPLETE",
        "says": [],
        "processes": [{"pid": 3487984, "host": "172.16.64.213"}],
    }
    (communicator,) = read([evidence]).of(RasCommunicator)
    assert (communicator.hash, communicator.errors, communicator.lagging) == (
        "cf264af53edbe986",
        ("INCOMPLETE", "MISMATCH"),
        (0, 2, 7),
    )
    assert [one.number for one in communicator.missing] == [21]
    assert [(one.pid, one.counts) for one in communicator.ranks] == [
        (483072, {"AllReduce": 6649}),
        (483074, {"AllReduce": 6649}),
        (1650386, {"AllReduce": 60}),
    ]


@pytest.mark.parametrize(
    "answer", ["", "[]", "HTTP/1.1 400 Bad Request", '{"communicators": 3}', "[" * 100_000]
)
def test_nonsense_is_no_ras(
    case: Case, serve: Callable[..., tuple[int, list[str]]], answer: str
) -> None:
    port, _ = serve(knows_json=True, answer=answer)
    (evidence,) = ask_ras(case, [own_member()], {"NCCL_RAS_ADDR": f"localhost:{port}"})
    assert (evidence.outcome, "is not RAS" in evidence.reason) == ("crashed", True)


def test_a_ras_that_is_silent_costs_the_deadline_and_no_more(
    case: Case, serve: Callable[..., tuple[int, list[str]]]
) -> None:
    port, _ = serve(knows_json=True, answer="", silent=True)
    (evidence,) = ask_ras(case, [own_member()], {"NCCL_RAS_ADDR": f"localhost:{port}"}, 0.4)
    assert evidence.outcome == "timed_out"
    assert evidence.took_s < 2


def test_a_job_without_nccl_is_not_asked(
    case: Case, serve: Callable[..., tuple[int, list[str]]]
) -> None:
    port, heard = serve(knows_json=True, answer="{}")
    assert ask_ras(case, [own_member()], {}) == []
    assert (
        ask_ras(
            case,
            [own_member()],
            {"NCCL_RAS_ADDR": f"localhost:{port}", "NCCL_RAS_ENABLE": "0"},
        )
        == []
    )
    # The port is there, but it belongs to nobody of the job.
    (evidence,) = ask_ras(case, [Member(0, 2**22 - 3)], {"NCCL_RAS_ADDR": f"localhost:{port}"})
    assert (evidence.outcome, heard) == ("unavailable", [])
    assert ras.port_of({}) == 28028


def test_text_that_says_nothing_of_ras() -> None:
    assert parse_text("hello") is None


def test_who_listens(tmp_path: Path) -> None:
    path = str(tmp_path / "w.sock")
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.bind(path)
        unix.listen()
        found = {
            (one.kind, one.address): one
            for one in listeners([own_member(), Member(0, os.getpid(), "loader-worker")])
        }
        assert ("unix", path) in found
        mine = found["tcp", f"127.0.0.1:{tcp.getsockname()[1]}"]
        assert (mine.host, mine.port, mine.ours) == ("127.0.0.1", tcp.getsockname()[1], True)


SERVER = """
import glob, sys, time
import torch.distributed as dist
from torch._C._distributed_c10d import _WorkerServer
store = dist.HashStore()
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
server = _WorkerServer(sys.argv[1])
dist.barrier()
# The server's thread gives itself its name, some time after the constructor has returned.
while "pt_workerserver\\n" not in [open(path).read() for path in glob.glob("/proc/self/task/*/comm")]:
    time.sleep(0.05)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.torch
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs torch for a real worker server"
)
def test_a_real_worker_server_tells_of_its_recorder(
    case: Case, start: Start, tmp_path: Path
) -> None:
    path = str(tmp_path / "w.sock")
    child = start(SERVER, path)
    found = collect(case, worker_server.COLLECTOR, JobView([Member(0, child.pid)]), 5.0)
    assert [one.kind for one in found] == ["worker_server", "flight_recorder"]
    assert [one.outcome for one in found] == ["ok", "ok"], [one.reason for one in found]
    facts = read(found)
    (server,) = facts.of(WorkerServer, rank=0)
    assert {"ping", "wait_counter_values", "fr_trace_json"} <= set(server.handlers)
    (dump,) = facts.of(FlightDump)
    assert dump.rank == 0


def test_wait_counters_put_the_active_ones_first() -> None:
    answer = {
        "a": {"active_count": 0, "total_calls": 3},
        "init": {"active_count": 1, "total_calls": 1},
        "bad": 3,
    }
    assert list(worker_server.counters(answer)) == ["init", "a"]
    assert worker_server.counters([]) == {}


def test_a_server_that_hangs_is_timed_out(tmp_path: Path) -> None:
    path = str(tmp_path / "w.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        seen = worker_server.ask_server(path, Member(3, 1), 0.3)
    assert (seen.outcome, seen.data["rank"]) == ("timed_out", 3)
    assert worker_server.ask_server(path + "x", Member(3, 1), 0.3).outcome == "unavailable"
