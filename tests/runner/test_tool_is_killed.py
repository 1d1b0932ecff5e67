"""SIGKILL of the tool, at whatever moment, leaves nobody behind and a case that can be read."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.runner.stage import PATIENCE_S, Stage
from trainprobe.saved_case import read_case
from trainprobe.system.keeper import Keeper

JOB = ("launcher", "rank-0", "rank-1", "loader-0", "loader-1", "deaf", "daemon")
EVIDENCE = {
    "looking": 1,
    "keeper-made": 1,
    "starting": 1,
    "started": 2,
    "running": 2,
    "stopping": 2,
}


@pytest.mark.parametrize("moment", list(EVIDENCE))
def test_nobody_outlives_the_tool(stage: Stage, moment: str) -> None:
    tool = subprocess.Popen(
        stage.argv("uses_a_keeper.py", str(stage.folder), moment), env=stage.env
    )
    try:
        stage.wait_for(*(JOB if moment == "running" else [moment]))
    finally:
        tool.kill()
        tool.wait(PATIENCE_S)
    assert stage.until(lambda: not stage.alive()), (
        f"left after the tool was killed while {moment}: {stage.alive()}"
    )
    saved = read_case(str(stage.folder / "case"))
    assert len(saved.evidence) >= EVIDENCE[moment]
    assert len(saved.damage) <= 1, "at most the last line is torn"


def test_signals_to_the_keeper_change_nothing(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("sleeps_for_ever.py")])
    stage.wait_for("asleep")
    pid = keeper._process.pid
    assert os.getpgid(pid) != os.getpgid(0), "Ctrl-C in the terminal does not reach it"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        os.kill(pid, number)
    keeper.start([stage.spec("ends_silently.py", "5", key="later")])
    assert keeper.running()
    assert keeper.trouble == ""
    keeper.close()
    assert not stage.alive()
    ended = keeper.children["child"].ended
    assert ended is not None
    assert ended.by_us, "what close() kills is our doing"


def test_death_of_the_keeper_itself_is_told_and_leaves_nobody(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("launches_like_torchrun.py", "2")])
    stage.wait_for("launcher", "rank-0", "rank-1", "loader-0", "loader-1")
    assert stage.until(lambda: len(keeper.alive_pids()) >= 5, keeper)
    os.kill(keeper._process.pid, signal.SIGKILL)
    assert stage.until(lambda: keeper.trouble != "", keeper)
    assert stage.until(lambda: not stage.alive())
    ended = keeper.children["child"].ended
    assert ended is not None
    assert ended.seen_by == "nobody"
    assert not keeper.running()
    keeper.stop()  # still no error, and no waiting for an answer that cannot come
