"""A process that hangs is ended by the one over it, with a last word; one that does not is not
noticed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.conftest import python_path

LAST_WORD = "lambda known: print('last', sorted(known.words.items()), len(known.rows)) or 7"


def overseen(body: str, *, within_s: float = 10.0) -> subprocess.Popen[str]:
    program = f"""
import os, signal, sys, time
from trainprobe.system.overseer import oversee, tell
oversee({within_s}, {LAST_WORD})
"""
    argv = [sys.executable, "-c", program + textwrap.dedent(body)]
    return subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **python_path()},
    )


@pytest.mark.parametrize(
    ("hang", "name"),
    [
        ("time.sleep(60)", "asleep"),
        (
            "__import__('re').match('(a+)+$', 'a' * 40 + 'b')",
            "a computation that lets no other thread run",
        ),
        (
            "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(60)",
            "deaf to signals",
        ),
    ],
)
def test_what_hangs_is_ended_with_a_last_word(hang: str, name: str) -> None:
    began = time.monotonic()
    with overseen(
        "tell(doing='x', within_s=1.0); tell(row={'id': 'a'}); tell(row='none');"
        f" print(os.getpid(), file=sys.stderr, flush=True); {hang}"
    ) as running:
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (7, "last [('doing', 'x'), ('within_s', 1.0)] 1\n"), (
        name,
        err,
    )
    assert time.monotonic() - began < 8
    assert not Path(f"/proc/{err.split()[0]}").exists()


@pytest.mark.parametrize(
    ("body", "code"),
    [("print('done'); sys.exit(10)", 10), ("os.kill(os.getpid(), signal.SIGKILL)", -9)],
)
def test_it_ends_as_the_working_process_has(body: str, code: int) -> None:
    with overseen(body) as running:
        out, _ = running.communicate(timeout=20)
    assert (running.returncode, out) == (code, "done\n" if code == 10 else "")


def test_a_signal_is_passed_on_and_the_worker_goes_with_its_overseer() -> None:
    body = """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    print(os.getpid(), flush=True)
    time.sleep(60)
    """
    with overseen(body) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.terminate()
        assert running.wait(10) == 5
    with overseen(body) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        running.kill()
        running.wait(10)
        until = time.monotonic() + 5
        while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
            time.sleep(0.02)
        assert not Path(f"/proc/{worker}/exe").exists()


def test_a_last_word_that_nobody_reads_is_given_up() -> None:
    program = """
import time, sys
from trainprobe.system import overseer
overseer.LAST_WORD_S = 0.5
overseer.oversee(0.5, lambda known: sys.stdout.write('x' * 10**6))
time.sleep(60)
"""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **python_path()},
    ) as running:
        assert running.wait(15) == 3
        assert running.stderr is not None
        assert "could not be written" in running.stderr.read()
    assert time.monotonic() - began < 10


def test_without_an_overseer_nothing_is_told() -> None:
    from trainprobe.system.overseer import tell

    tell(row={"id": object()})
    assert signal.getsignal(signal.SIGALRM) in {signal.SIG_DFL, None}
