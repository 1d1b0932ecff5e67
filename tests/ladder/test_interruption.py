"""Ctrl-C and SIGTERM in the middle of a cell: everything is stopped, and what was learnt is
kept.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.ladder.conftest import Climb


def send_when(path: Path, number: signal.Signals) -> None:
    ends = time.monotonic() + 20
    while not path.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_climb_ends_in_order(number: signal.Signals, probe: Climb, tmp_path: Path) -> None:
    before = signal.getsignal(number)
    ready = tmp_path / "ready"
    sender = threading.Thread(target=send_when, args=(ready, number))
    sender.start()
    done = probe(
        f"say('phase.begin', name='waiting')\nopen({str(ready)!r}, 'w').close()\ntime.sleep(600)\n",
        timeout_s=60,
    )
    sender.join()

    assert done.interrupted
    assert signal.getsignal(number) is before
    assert (done.rung("mine@1")["outcome"], done.rung("mine@1")["unmet"]) == (
        "not_measured",
        "interrupted",
    )
    assert [(one.data["phase"], one.cell) for one in done.of("interrupted")] == [("mine", "mine@1")]
    pid = done.of("rank.ended")[0].subject.pid
    assert not os.path.exists(f"/proc/{pid}")
