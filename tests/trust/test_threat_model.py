"""What docs/threat-model.md claims: that the tests it names are there, and the claims that have no
other test.
"""

from __future__ import annotations

import ast
import os
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.case import Case
from trainprobe.collect.child_programs import run_child
from trainprobe.collect.collectors import ras, worker_server
from trainprobe.collect.members import Member

CONNECT = {"connect", "connect_ex", "create_connection", "urlopen", "sendto", "open_connection"}
# The notification to the user's own URL, what listens in the job on this host, and the way back
# from a node.
CONNECTING = {
    "supervise/notification.py",
    "collect/collectors/ras.py",
    "collect/collectors/worker_server.py",
    "system/call_back.py",
}
NETWORK = {"socket", "http", "urllib", "ssl", "ftplib", "smtplib", "asyncio", "xmlrpc"}


def test_the_page_names_tests_that_are_there() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 20
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).exists()
        or (name and f"\ndef {name}(" not in (ROOT / path).read_text("utf-8"))
    ]
    assert missing == []


def test_four_modules_open_connections() -> None:
    found = set()
    for path in (ROOT / "trainprobe").rglob("*.py"):
        text = path.read_text("utf-8")
        if not any(f"{name}(" in text for name in CONNECT):
            continue  # to parse them all takes seconds
        nodes = list(ast.walk(ast.parse(text)))
        imported = {
            name.split(".")[0]
            for node in nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
        }
        calls = {
            node.func.attr
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if imported & NETWORK and calls & CONNECT:
            found.add(path.relative_to(ROOT / "trainprobe").as_posix())
    assert found == CONNECTING


def test_a_case_is_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "there").mkdir(mode=0o755)
        for name in ("new", "there"):
            with Case.create(str(tmp_path / name), "attach", []) as case:
                several = [case.add("plan").id, case.add("plan").id]
                case.forget(several[:1])
                case.keep_file("log", b"text")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o700
    for name in ("new", "there"):
        assert mode(tmp_path / name / "evidence.jsonl") == 0o600
        assert mode(tmp_path / name / "files") == 0o700


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_children_load_nothing_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "loaded"
    for name in ("json", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    for site in (False, True):
        ran = run_child("mounts_child", "1", "/", timeout_s=30, site=site, cwd=str(tmp_path))
        assert b"answered" in ran.stdout
    assert not mark.exists()


@contextmanager
def flood(listening: socket.socket, first: bytes) -> Iterator[None]:
    """Answer whoever connects without end."""

    def pour() -> None:
        try:
            line, _ = listening.accept()
            with line:
                line.sendall(first)
                while True:
                    line.sendall(b"x" * 65536)
        except OSError:
            return

    thread = threading.Thread(target=pour, daemon=True)
    thread.start()
    yield
    listening.close()
    thread.join(30)


def test_an_answer_of_ras_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ras, "ANSWER_CAP_BYTES", 2**20)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with flood(listening, b"SERVER PROTOCOL 2\nOK\nOK\n"):
            answer, _ = ras.ask("127.0.0.1", port, time.monotonic() + 60)
    assert 2**20 <= len(answer) < 2**21


def test_an_answer_of_a_worker_server_without_end_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_server, "ANSWER_CAP_BYTES", 2**20)
    path = str(tmp_path / "w.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        with flood(listening, b"HTTP/1.1 200 OK\r\n\r\n"):
            seen = worker_server.ask_server(path, Member(0, 1), 60.0)
    assert (seen.outcome, "cannot be used" in seen.reason) == ("crashed", True)
