"""Cells of the user's own command, run for real with small scripts that need no torch."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.ladder.conftest import Climb
from trainprobe.config import Settings
from trainprobe.errors import UsageError

STEPS = """
import os, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def train(steps, pause=0.05):
    for step in range(steps):
        print("step", step, flush=True)
        time.sleep(pause)
"""


def test_a_small_size_passes_by_steps_and_the_largest_runs_its_time(script: Climb) -> None:
    done = script(STEPS + "train(10**6)\n", settings=Settings(stall_s=3.0, run_s=3.0))
    small, large = done.rung("user_script@1"), done.rung("user_script@2")

    assert (small["outcome"], small["stopped_because"]) == ("passed", "steps_seen")
    assert small["took_s"] < 3
    assert (large["outcome"], large["stopped_because"]) == ("passed", "time_up")
    assert 3 <= large["elapsed_s"] < 6
    assert not done.of("stacks.python")
    assert {ended["by_us"] for ended in done.endings("user_script@2").values()} == {True}


def test_a_script_that_ends_after_steps_passes(script: Climb) -> None:
    done = script(STEPS + "train(5, 0.01)\n")

    assert done.outcomes() == {"user_script@1": "passed", "user_script@2": "passed"}
    assert done.rung("user_script@2")["stopped_because"] == "ended"


def test_a_script_without_steps_or_torch_is_not_measured(script: Climb) -> None:
    done = script("print('hello')\n", nproc=1)

    assert done.rung("user_script@1")["outcome"] == "not_measured"


def test_a_rank_that_stands_still_is_a_stall_with_looks_and_source(script: Climb) -> None:
    done = script(
        STEPS + "def stuck():\n    time.sleep(1000)\ntrain(2)\nif rank == 1:\n   "
        " stuck()\ntrain(2)\ntime.sleep(1000)\n"
    )
    rung = done.rung("user_script@2")

    assert (rung["outcome"], rung["stopped_because"]) == ("timed_out", "stall")
    assert {
        one.subject.rank for one in done.of("stacks.python", "user_script@2") if one.outcome == "ok"
    } == {0, 1}
    sites = [site for one in done.of("source", "user_script@2") for site in one.data["sites"]]
    assert any(
        block["kind"] == "if" and "rank == 1" in block["text"]
        for site in sites
        for block in site["blocks"]
    )


def test_silence_from_the_start(script: Climb) -> None:
    done = script("import time\ntime.sleep(1000)\n", nproc=1)

    assert (
        done.rung("user_script@1")["outcome"],
        done.rung("user_script@1")["stopped_because"],
    ) == ("timed_out", "first_output")


def test_a_silent_script_that_computes_is_not_blamed(script: Climb) -> None:
    body = (
        "import time\ndef one():\n    sum(range(3000))\ndef two():\n    sum(range(3000))\nwhile"
        " True:\n    one()\n    two()\n"
    )
    done = script(body, nproc=1, settings=Settings(first_output_s=2.0, stall_s=2.0, run_s=4.0))

    assert (
        done.rung("user_script@1")["outcome"],
        done.rung("user_script@1")["stopped_because"],
    ) == ("passed", "time_up")
    assert "no step was seen" in done.rung("user_script@1")["says"]


def test_a_rank_that_fails_while_the_other_waits(script: Climb) -> None:
    done = script(
        STEPS + "train(4)\nif rank == 1:\n    raise KeyError('label')\ntrain(1)\ntime.sleep(1000)\n"
    )
    rung = done.rung("user_script@2")

    assert (rung["outcome"], rung["ranks"], rung["stopped_because"]) == ("crashed", [1], "fault")
    assert rung["elapsed_s"] < 10
    assert {
        rank: (ended["code"], ended["by_us"])
        for rank, ended in done.endings("user_script@2").items()
    } == {0: (None, True), 1: (1, False)}
    assert any(
        "KeyError: 'label'" in one.data["head"]
        for one in done.of("output", "user_script@2")
        if one.subject.rank == 1
    )
    assert {one.subject.rank for one in done.of("process", "user_script@2")} == {0}


def test_a_stopped_rank_is_noticed_long_before_a_stall(script: Climb) -> None:
    body = (
        STEPS + "import signal\ntrain(4)\nif rank == 1 and world == 2:\n    os.kill(os.getpid(),"
        " signal.SIGSTOP)\ntrain(10**6)\n"
    )
    done = script(body, settings=Settings(stall_s=60.0, run_s=60.0))
    rung = done.rung("user_script@2")

    assert (rung["outcome"], rung["ranks"], rung["stopped_because"]) == ("timed_out", [1], "fault")
    assert rung["elapsed_s"] < 15
    assert {
        one.data["state"] for one in done.of("process", "user_script@2") if one.subject.rank == 1
    } == {"T"}
    assert done.endings("user_script@2")[1]["by_us"]


def test_a_rank_that_leaves_while_the_other_waits(script: Climb) -> None:
    done = script(
        STEPS + "train(4)\nif rank == 1:\n    sys.exit(0)\ntime.sleep(1000)\n",
        settings=Settings(stall_s=30.0, run_s=60.0),
    )
    rung = done.rung("user_script@2")

    assert (rung["outcome"], rung["stopped_because"], rung["ranks"]) == ("timed_out", "stall", [1])
    assert "rank 1 ended with exit code 0 while rank 0" in rung["says"]
    assert rung["elapsed_s"] < 20


def test_the_whole_climb_has_a_time(script: Climb) -> None:
    done = script(STEPS + "train(2)\ntime.sleep(1000)\n", timeout_s=7.0, settings=Settings())

    assert done.rung("user_script@1")["outcome"] == "timed_out"
    assert done.rung("user_script@2")["unmet"] == "time"


def test_a_command_of_the_users_own_with_ranks_below_it(script: Climb, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.sh"
    launcher.write_text(
        'for rank in $(seq 0 $(($1 - 1))); do RANK=$rank WORLD_SIZE=$1 "$2" train.py & done\nwait\n'
    )
    sh = shutil.which("sh") or "/bin/sh"
    done = script(
        STEPS + "train(8, 0.2)\n",
        form="command",
        command=(sh, str(launcher), "{ranks}", sys.executable),
        settings=Settings(stall_s=4.0, run_s=8.0),
    )

    assert done.outcomes() == {"user_script@1": "passed", "user_script@2": "passed"}
    roles = {(one.subject.role, one.subject.rank) for one in done.of("rank.ended", "user_script@2")}
    assert roles == {("launcher", None), ("rank", 0), ("rank", 1)}


def test_leftovers_of_an_earlier_launch_do_not_reach_a_command(
    script: Climb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("MASTER_ADDR", "nowhere")
    done = script(
        "import os\nprint('left', os.environ.get('RANK'), os.environ.get('MASTER_ADDR'),"
        " os.environ.get('PYTHONFAULTHANDLER'))\n",
        form="command",
        command=(sys.executable, "train.py"),
        nproc=1,
    )

    assert any("left None None 1" in one.data["head"] for one in done.of("output"))


def test_what_was_switched_on_is_recorded(script: Climb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    rung = script("print('hello')\n", nproc=1).rung("user_script@1")

    assert rung["switched_on"]["PYTHONUNBUFFERED"] == "1"
    assert os.path.basename(rung["switched_on"]["PYTHONPATH"].split(":")[0]) == "_witness"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"form": "launch", "argv": ("nowhere.py",)}, "nowhere.py does not exist"),
        (
            {"form": "command", "argv": ("no-such-launcher", "train.py")},
            "no-such-launcher is not on the PATH",
        ),
        ({"form": "command", "argv": (sys.executable, "nowhere.py")}, "nowhere.py does not exist"),
        ({"gpus": 4096, "nproc": None}, "--gpus 4096 was asked for"),
        ({"only": ("hots",)}, "hots, which is not a rung"),
        ({"interpreter": "/nowhere/python"}, "/nowhere/python does not exist"),
        ({"interpreter": __file__}, "is not executable"),
        ({"interpreter": "/bin/ls"}, "does not answer as a Python"),
        ({"probe_dirs": ("/nowhere",)}, "/nowhere cannot be read"),
    ],
)
def test_bad_requests_are_one_sentence_and_start_nothing(
    climbed: Climb, asked: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        climbed(**{"nproc": 1, **asked})

    assert words in caught.value.says
    assert caught.value.do


def test_a_syntax_error_is_named_with_its_line(script: Climb) -> None:
    with pytest.raises(UsageError, match=r"train\.py:2: "):
        script("import os\nfor x in\n")


def test_the_script_is_read_by_lint_before_its_first_cell_and_runs_all_the_same(
    script: Climb,
) -> None:
    forks = (
        "import threading\nthread = threading.Thread(target=train, args=(1,))\nthread.start()\nif"
        " not os.fork():\n    os._exit(0)\nos.wait()\n"
    )
    done = script(STEPS + forks + "train(5, 0.01)\n", nproc=1)
    (read,) = done.of("lint")

    assert (read.outcome, read.data["files"], read.cell) == ("ok", 1, "")
    assert [row["id"] for row in read.data["findings"]] == ["fork-inherited-lock"]
    assert done.evidence.index(read) < min(done.evidence.index(one) for one in done.of("rung"))
    assert done.rung("user_script@1")["outcome"] == "passed"


def test_the_witness_can_be_left_out(script: Climb) -> None:
    body = (
        "import os, sys\nassert 'TRAINPROBE_WITNESS_DIR' not in os.environ\nassert '_witness' not"
        " in os.environ.get('PYTHONPATH', '')\nprint('step 1')\n"
    )
    done = script(body, nproc=1, settings=Settings(witness=False))

    assert done.rung("user_script@1")["outcome"] == "passed"
    assert not done.of("probe.events", "user_script@1")
