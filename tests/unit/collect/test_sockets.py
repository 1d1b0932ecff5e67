"""Sockets: the kernel's tables as text, and real pairs of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.collector import JobView, collect
from trainprobe.collect.collectors import sockets
from trainprobe.collect.collectors.sockets import read_sockets
from trainprobe.collect.members import Member
from trainprobe.facts import Connection, read

Start = Callable[..., "subprocess.Popen[bytes]"]

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 501 1 00000000b351d9db 100 0 0 10 0
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000005 00:00000000 00000000     0        0 502 1 0 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 02:000A0000 00000000     0        0 503 1 0 20 4 30 10 -1
   3: 0100000A:9C41 0500000A:735C 02 00000001:00000000 01:00000100 00000004     0        0 504 1 0 20 4 30 10 -1
   4: 0100000A:9C42 0500000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 505 1 0 20 4 30 10 -1
   5: nonsense
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:1F91 0000000000000000FFFF00000100007F:9C43 08 00000000:00000000 00:00000000 00000000     0        0 601
   1: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 602
"""
UNIX = """\
Num       RefCount Protocol Flags    Type St Inode Path
00000000078b0c29: 00000003 00000000 00000000 0001 03  1562
000000001edc3ce7: 00000002 00000000 00010000 0001 01  1561 /run/w.sock
"""


def host(folder: Path, descriptors: dict[int, dict[int, str]]) -> str:
    """A /proc by hand: pid to descriptor to name, all in one network namespace."""
    for pid, names in descriptors.items():
        (folder / str(pid) / "fd").mkdir(parents=True)
        (folder / str(pid) / "net").mkdir()
        (folder / str(pid) / "ns").mkdir()
        (folder / str(pid) / "ns" / "net").symlink_to("net:[4026531840]")
        for name, text in (("tcp", TCP), ("tcp6", TCP6), ("unix", UNIX)):
            (folder / str(pid) / "net" / name).write_text(text)
        (folder / str(pid) / "stat").write_text(
            f"{pid} (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 2 3"
        )
        (folder / str(pid) / "cmdline").write_bytes(f"python\0job{pid}.py\0".encode())
        for number, target in names.items():
            (folder / str(pid) / "fd" / str(number)).symlink_to(target)
    return str(folder)


def test_each_socket_leads_to_its_other_end(tmp_path: Path) -> None:
    proc = host(
        tmp_path,
        {
            70: {3: "socket:[501]", 4: "socket:[502]", 5: "/tmp/x"},
            71: {3: "socket:[504]", 9: "socket:[505]"},
            99: {7: "socket:[503]"},
        },
    )
    seen = read_sockets([Member(0, 70), Member(1, 71)], 1.0, proc)
    assert seen.outcome == "ok"
    rows = {row["fd"] * 100 + row["pid"]: row for row in seen.data["connections"]}
    waiting = rows[470]
    assert (waiting["local"], waiting["remote"], waiting["rx_queue"], waiting["state"]) == (
        "127.0.0.1:8080",
        "127.0.0.1:40000",
        5,
        "ESTAB",
    )
    assert (waiting["peer_pid"], waiting["peer"], waiting["peer_rank"], waiting["peer_here"]) == (
        99,
        "python job99.py",
        None,
        True,
    )
    knocking = rows[371]
    assert (knocking["state"], knocking["remote"], knocking["retransmits"], knocking["timer"]) == (
        "SYN_SENT",
        "10.0.0.5:29532",
        4,
        "retransmit",
    )
    assert (knocking["peer_pid"], knocking["peer_here"], knocking["rank"]) == (None, False, 1)
    assert rows[370]["rx_queue"] == 2  # connections that nobody has accepted yet
    # What may matter comes first, web services next.
    assert [row["state"] for row in seen.data["connections"]][:3] == ["LISTEN", "ESTAB", "SYN_SENT"]
    assert seen.data["connections"][3]["remote"] == "10.0.0.5:443"


def test_the_peer_inside_the_job_is_a_rank_and_not_its_forked_worker(tmp_path: Path) -> None:
    proc = host(
        tmp_path, {70: {4: "socket:[502]"}, 71: {3: "socket:[503]"}, 72: {3: "socket:[503]"}}
    )
    seen = read_sockets([Member(1, 72, "loader-worker"), Member(0, 70), Member(1, 71)], 1.0, proc)
    (row,) = [row for row in seen.data["connections"] if row["pid"] == 70]
    assert (row["peer_pid"], row["peer_rank"]) == (71, 1)


def test_addresses_and_states_of_version_six() -> None:
    mapped, alone = sockets.parse_inet("tcp", TCP6)
    assert (mapped.local, mapped.remote, mapped.state) == (
        "127.0.0.1:8081",
        "127.0.0.1:40003",
        "CLOSE_WAIT",
    )
    assert (alone.local, alone.state) == ("[::1]:8082", "LISTEN")
    with pytest.raises(ValueError, match="no address"):
        sockets.parse_address("0100007F0100007F:1F90")
    assert sockets.parse_inet("tcp", TCP6.replace("0000000000000000", "-100000000000000")) == []


def test_unix_sockets_from_text() -> None:
    connected, listening = sockets.parse_unix(UNIX + "nonsense\n", {})
    assert (connected.inode, connected.state) == (1562, "ESTAB")
    assert (listening.local, listening.state) == ("/run/w.sock", "LISTEN")


SERVER = """
import socket, sys, time
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
accepted, _ = listening.accept()
print("accepted", flush=True)
time.sleep(600)
"""
CLIENT = """
import socket, sys, time
connected = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connected.sendall(b"hello")
pair = socket.socketpair()
pair[0].sendall(b"to nobody")
print("ready", flush=True)
time.sleep(600)
"""


def test_a_real_connection_is_told_with_both_its_processes(
    case: Case, tmp_path: Path, start: Start
) -> None:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    server = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        client = start(CLIENT, port, name="client.py")
        assert server.stdout.readline() == "accepted\n"
        (evidence,) = collect(case, sockets.COLLECTOR, JobView([Member(0, client.pid)]), 10.0)
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()
    assert evidence.outcome == "ok"
    facts = read([evidence])
    (connection,) = [one for one in facts.of(Connection, rank=0) if one.kind == "tcp"]
    assert (connection.remote, connection.state, connection.peer_pid, connection.port) == (
        f"127.0.0.1:{port}",
        "ESTAB",
        server.pid,
        int(port),
    )
    assert connection.peer.endswith("server.py")
    pair = [one for one in facts.of(Connection) if one.kind == "unix"]
    assert len(pair) == 2
    if pair[0].peer_here:  # where the kernel answers over netlink
        assert sorted(one.rx_queue or 0 for one in pair) == [0, 9]


def test_anothers_descriptors_are_hidden_with_a_reason(
    start: Start, as_nobody: Callable[[Callable[[], Any]], Any]
) -> None:
    child = start("import time; print('ready', flush=True); time.sleep(60)")
    seen = as_nobody(lambda: read_sockets([Member(0, child.pid)], 1.0))
    assert seen.outcome == "denied"
    assert "belongs to root" in seen.reason


def test_a_process_that_is_gone_has_no_sockets() -> None:
    with socket.socket() as own:
        assert own.fileno() > 0
        assert read_sockets([Member(0, 2**22 - 3)], 1.0).data["connections"] == []
