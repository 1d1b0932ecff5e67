"""Each program misbehaves in its own way, ends on time, and is reported for what it is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.runner.stage import Stage, wait_for_end
from trainprobe.system.keeper import Keeper


def test_output_that_floods_is_cut_to_its_head_and_newest_tail(
    stage: Stage, keeper: Keeper
) -> None:
    keeper.start([stage.spec("floods_output.py", "300", cap_bytes=2**20)])
    biggest = 0
    while keeper.running():
        biggest = max(biggest, stage.output("child").stat().st_blocks * 512)
        keeper.wait(0.05)
    child = keeper.children["child"]
    text = stage.output("child").read_bytes()
    assert child.ended is not None
    assert (child.ended.how, child.ended.code, child.ended.by_us) == ("exited", 0, False)
    assert text.startswith(b"the first word\n00000000x")
    assert text.endswith(b"the last word\n")
    assert text.count(b"bytes cut here]") == 1
    assert child.cut_bytes > 250 * 2**20
    said = b"\n[trainprobe: %d bytes cut here]\n" % child.cut_bytes
    assert said in text
    whole = len("the first word\n") + 300 * 2**20 + len("the last word\n")
    assert child.cut_bytes + len(text) - len(said) == whole, (
        "what was cut and what was kept make up what was written"
    )
    assert biggest < 200 * 2**20, "it never came near what was attempted"


def test_ignoring_sigterm_ends_by_sigkill_of_ours(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("ignores_sigterm.py")])
    stage.wait_for("deaf")
    keeper.stop(grace_s=0.2)
    ended = keeper.children["child"].ended
    assert ended is not None
    assert (ended.how, ended.signal, ended.by_us, ended.seen_by) == (
        "signalled",
        signal.SIGKILL,
        True,
        "wait",
    )
    assert ended.took_s >= 0.2
    assert not stage.alive()


def test_a_daemon_is_seen_and_does_not_get_away(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("becomes_a_daemon.py")])
    stage.wait_for("daemon")
    wait_for_end(keeper, "child")
    daemon = stage.pids["daemon"]
    assert stage.until(lambda: daemon in keeper.alive_pids(), keeper)
    ended = keeper.children["child"].ended
    assert ended is not None
    assert (ended.how, ended.code) == ("exited", 0)
    assert not keeper.running(), "only those that we started count as running"
    assert "becomes_a_daemon.py" in keeper.descendants[daemon].cmdline
    keeper.stop(grace_s=0.1)
    left = keeper.descendants[daemon].ended
    assert left is not None
    assert (left.how, left.signal, left.by_us) == ("signalled", signal.SIGKILL, True)
    assert not stage.alive()


def test_output_kept_open_does_not_make_an_ended_program_look_alive(
    stage: Stage, keeper: Keeper
) -> None:
    keeper.start([stage.spec("keeps_output_open.py")])
    stage.wait_for("holder")
    wait_for_end(keeper, "child")
    assert not keeper.running()
    assert b"my last word\n" in stage.output("child").read_bytes()
    assert stage.alive() == [stage.pids["holder"]]
    keeper.stop(grace_s=1)
    assert not stage.alive()


@pytest.mark.parametrize("code", [0, 1, 137])
def test_an_exit_code_is_an_exit_code(stage: Stage, keeper: Keeper, code: int) -> None:
    keeper.start([stage.spec("ends_silently.py", str(code))])
    wait_for_end(keeper, "child")
    ended = keeper.children["child"].ended
    assert ended is not None
    assert (ended.how, ended.code, ended.signal) == ("exited", code, None)
    assert stage.output("child").read_bytes() == b""


def test_a_segfault_is_a_signal_that_is_not_ours(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("segfaults.py")])
    wait_for_end(keeper, "child")
    ended = keeper.children["child"].ended
    assert ended is not None
    assert (ended.how, ended.signal, ended.by_us) == ("signalled", signal.SIGSEGV, False)


def test_sigkill_from_outside_is_not_ours_even_while_we_stop(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("ignores_sigterm.py"), stage.spec("sleeps_for_ever.py", key="other")])
    stage.wait_for("deaf", "asleep")
    os.kill(stage.pids["asleep"], signal.SIGKILL)
    wait_for_end(keeper, "other")
    keeper.stop(grace_s=0.1)
    outside, ours = keeper.children["other"].ended, keeper.children["child"].ended
    assert outside is not None
    assert ours is not None
    assert (outside.signal, outside.by_us) == (signal.SIGKILL, False)
    assert (ours.signal, ours.by_us) == (signal.SIGKILL, True)


def test_a_sleeper_and_a_stopped_one_obey_sigterm(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("sleeps_for_ever.py")])
    stage.wait_for("asleep")
    os.kill(stage.pids["asleep"], signal.SIGSTOP)
    keeper.stop(grace_s=20)
    ended = keeper.children["child"].ended
    assert ended is not None
    assert (ended.how, ended.signal, ended.by_us) == ("signalled", signal.SIGTERM, True)


def test_many_children_forked_quickly_all_go(stage: Stage, keeper: Keeper) -> None:
    keeper.start([stage.spec("forks_quickly.py", "150")])
    stage.wait_for("forker")
    assert stage.until(lambda: len(stage.alive()) >= 301)
    keeper.stop(grace_s=0.1)
    assert not stage.alive()
    assert not keeper.alive_pids()
    assert len(keeper.descendants) >= 300


@pytest.mark.parametrize("how", ["in-its-group", "in-new-sessions"])
def test_who_never_keeps_a_pid_is_caught(stage: Stage, keeper: Keeper, how: str) -> None:
    keeper.start([stage.spec("changes_its_pid.py", how)])
    stage.wait_for("runner")
    wait_for_end(keeper, "child")
    keeper.stop(grace_s=0, kill_s=20)
    assert not stage.alive()
    assert not keeper.alive_pids()


def test_ranks_of_a_launcher_are_seen_with_their_rank_and_exit_code(
    stage: Stage, keeper: Keeper
) -> None:
    keeper.start([stage.spec("launches_like_torchrun.py", "2", "7")])
    stage.wait_for("launcher", "rank-0", "rank-1", "loader-0", "loader-1")
    ranks = {stage.pids["rank-0"]: 0, stage.pids["rank-1"]: 1}
    assert stage.until(
        lambda: (
            {pid: each.rank for pid, each in keeper.descendants.items() if pid in ranks} == ranks
        ),
        keeper,
    )
    os.kill(stage.pids["launcher"], signal.SIGUSR1)
    stage.wait_for(
        "collected"
    )  # by its own parent, so that only the kernel's memory of it can tell
    gone = stage.pids["rank-1"]
    assert stage.until(lambda: keeper.descendants[gone].ended is not None, keeper)
    ended = keeper.descendants[gone].ended
    assert ended is not None
    assert ended.seen_by in ("proc", "nobody")
    if ended.seen_by == "proc":
        assert (ended.how, ended.code, ended.by_us) == ("exited", 7, False)
    else:
        assert (ended.code, ended.signal) == (None, None), "a code is never made up"
    assert keeper.running()
    keeper.stop(grace_s=0.1)
    assert not stage.alive()


@pytest.mark.root
def test_what_sigkill_cannot_end_is_told_and_left(stage: Stage, keeper: Keeper) -> None:
    """The freezer of cgroup v1 holds a process in state D: SIGKILL reaches it only when it
    thaws.
    """
    freezer = Path(f"/sys/fs/cgroup/freezer/trainprobe-{stage.mark}")
    if not os.access(freezer.parent, os.W_OK) or not (freezer.parent / "cgroup.procs").exists():
        pytest.skip("no freezer of cgroup v1 that we may write to")
    keeper.start([stage.spec("sleeps_for_ever.py"), stage.spec("ignores_sigterm.py", key="other")])
    stage.wait_for("asleep", "deaf")
    freezer.mkdir()
    try:
        (freezer / "cgroup.procs").write_text(str(stage.pids["asleep"]))
        (freezer / "freezer.state").write_text("FROZEN")
        assert stage.until(lambda: (freezer / "freezer.state").read_text() == "FROZEN\n")
        keeper.stop(grace_s=0.1, kill_s=0.5)
        frozen, other = keeper.children["child"].ended, keeper.children["other"].ended
        assert frozen is not None
        assert other is not None
        assert (frozen.how, frozen.signal) == ("unkillable", None)
        assert "state D" in frozen.reason
        assert other.signal == signal.SIGKILL
    finally:
        (freezer / "freezer.state").write_text("THAWED")
        assert stage.until(lambda: not stage.alive())
        freezer.rmdir()
