"""The member of a pair by itself: what it says without a partner. With partners it is tested
over hosts (tests/cluster/test_isolate.py).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.conftest import ROOT


def member(told: object, folder: Path) -> tuple[int, list[dict[str, Any]], float]:
    events = folder / "events.jsonl"
    env = {
        **os.environ,
        "TRAINPROBE_EVENTS": str(events),
        "TRAINPROBE_PAIR": told if isinstance(told, str) else json.dumps(told),
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(ROOT / "probes" / "node_pair.py")],
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return (
        done.returncode,
        [json.loads(line) for line in events.read_text().splitlines()],
        time.monotonic() - began,
    )


def test_without_being_told_who_takes_part_it_cannot_say(tmp_path: Path) -> None:
    for place, told in enumerate(
        (
            "",
            "[]",
            {"me": "a", "members": [{"name": "b"}], "ports": [], "datagrams": 1, "token": "x"},
        )
    ):
        (tmp_path / str(place)).mkdir()
        code, events, _ = member(told, tmp_path / str(place))
        assert (code, events[-1]["answer"]) == (11, "cannot")


def test_alone_it_says_that_it_heard_nobody_and_ends(tmp_path: Path) -> None:
    """Its partner is this very host under another name, where other programs listen or nobody."""
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        ports = [taken.getsockname()[1]]
        told = {
            "me": "a",
            "members": [
                {"name": "a", "address": "127.0.0.1"},
                {"name": "b", "address": "127.0.0.1"},
            ],
            "ports": ports,
            "datagrams": 41999,
            "token": "x",
            "meet_s": 0.5,
            "end_s": 3,
        }
        code, events, took_s = member(told, tmp_path)
    peer = next(event for event in events if event.get("name") == "peer")
    here = next(event for event in events if event.get("name") == "self")
    assert (code, events[-1]["answer"], peer["heard"], list(here["taken"])) == (
        10,
        "no",
        False,
        [str(ports[0])],
    )
    assert took_s < 30


FILES = """
import sys
sys.path.insert(0, sys.argv[1])
from _node_pair.files import SharedFiles
from _node_pair.members import PairRequest
def request(me, *paths):
    return PairRequest(me, [("a", ""), ("b", "")], [], 0, b"x" * 16, paths=list(paths))
shared, own, gone = sys.argv[2:]
a, b = SharedFiles(request("a", shared, own, gone)), SharedFiles(request("b", shared, gone))
its, mine = a.seen(1), b.seen(0)
print(set(a.written) == {shared, own}, [its[shared], its[own], its[gone]], [mine[shared], mine[gone]])
a.remove()
b.remove()
"""


def test_members_look_for_each_others_files_and_leave_none(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("shared", "own", "gone")]
    for folder in folders[:2]:
        folder.mkdir()
    argv = [sys.executable, "-c", FILES, str(ROOT / "probes"), *map(str, folders)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout == "True [True, False, False] [True, False]\n", done.stderr
    assert [list(folder.iterdir()) for folder in folders[:2]] == [[], []]
