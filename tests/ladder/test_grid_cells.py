"""The climb over ranks and rows, with knobs and gone on with, run for real with small scripts
that need no torch.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.ladder.conftest import Climb, Climbed
from trainprobe.config import Settings
from trainprobe.errors import UsageError

TRAIN = """
import argparse, os, sys, time
words = argparse.ArgumentParser()
words.add_argument("--rows", type=int)
words.add_argument("--mode", default="bad")
asked = words.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
def steps(count):
    for step in range(count):
        print("step", step, flush=True)
"""
FROM_ROWS = TRAIN + "steps(3)\nif asked.rows >= 100:\n    time.sleep(1000)\n"
FROM_RANKS = (
    TRAIN + "steps(3)\nif world >= 2 and asked.mode == 'bad':\n    raise KeyError('label')\n"
)
ARGV = ("--rows", "{rows}")


def grid(done: Climbed) -> dict[str, tuple[str, str]]:
    return {
        one.cell.partition("@")[2]: (one.data["outcome"], one.data["unmet"])
        for one in done.of("rung")
        if one.data["probe"] == "user_script"
    }


def test_a_hang_from_some_size_on_costs_seconds_and_larger_cells_are_left_out(
    script: Climb,
) -> None:
    done = script(
        FROM_ROWS,
        argv=ARGV,
        nproc=None,
        ranks=(1, 2),
        rows=(2, 100, 1000),
        settings=Settings(stall_s=2.5),
    )

    assert grid(done) == {
        "1x2": ("passed", ""),
        "2x2": ("passed", ""),
        "1x100": ("timed_out", ""),
        "2x100": ("skipped", "lower-rung:user_script"),
        "1x1000": ("skipped", "lower-rung:user_script"),
        "2x1000": ("skipped", "lower-rung:user_script"),
    }
    hung = done.rung("user_script@1x100")
    assert (hung["rows"], hung["nproc"], hung["stopped_because"]) == (100, 1, "stall")
    assert hung["deadlines"]["stall_s"] == 2.5
    assert hung["elapsed_s"] < 10
    assert done.of("stacks.python", "user_script@1x100")


def test_what_is_not_larger_than_the_failing_cell_is_still_tried(script: Climb) -> None:
    done = script(FROM_RANKS, argv=ARGV, nproc=None, ranks=(1, 2), rows=(2, 100))

    assert {cell: outcome for cell, (outcome, _) in grid(done).items()} == {
        "1x2": "passed",
        "2x2": "crashed",
        "1x100": "passed",
        "2x100": "skipped",
    }
    assert done.rung("user_script@1x100")["to_its_end"]


def test_each_cell_has_its_numbers_and_the_climb_its_limits(script: Climb) -> None:
    done = script(
        TRAIN + "steps(3)\ntime.sleep(0.3)\n", argv=ARGV, nproc=None, ranks=(2,), rows=(7,)
    )
    (limits,) = done.of("cell.measures", "")
    (cell,) = done.of("cell.measures", "user_script@2x7")
    found = {row["name"]: row for row in cell.data["measures"]}

    assert {"limit.memory_bytes", "limit.cpus"} <= {row["name"] for row in limits.data["measures"]}
    assert {"took_s", "first_output_s", "pss", "rss", "fds", "pids"} <= set(found)
    assert {(row["rows"], row["ranks"]) for row in found.values()} == {(7, 2)}
    assert 0.3 <= found["took_s"]["value"] < 10
    assert found["pids"]["value"] >= 2


def test_the_knob_that_heals_is_found_and_checked_by_running_the_cell_again(script: Climb) -> None:
    done = script(
        FROM_RANKS,
        argv=ARGV,
        nproc=None,
        ranks=(2,),
        rows=(2,),
        ablate=True,
        knobs=(("mode", "good"),),
    )
    found = grid(done)

    assert found["2x2#mode=good"][0] == "passed"
    assert found["2x2#again"][0] == "crashed"
    assert found["2x2#threads=1"][0] == "crashed"
    assert found["2x2#workers=0"] == ("skipped", "knob:not-here")
    assert found["2x2#length=half"] == ("skipped", "knob:not-here")
    healed = done.rung("user_script@2x2#mode=good")
    assert (healed["of_cell"], healed["knob"], healed["knob_how"], healed["applied"]) == (
        "user_script@2x2",
        "mode=good",
        "option",
        True,
    )
    assert done.of("ablation")[0].data["of_cell"] == "user_script@2x2"


def test_a_command_that_refuses_its_arguments_is_not_ablated(script: Climb) -> None:
    done = script(
        TRAIN, argv=("--no-such-option", "{rows}"), nproc=None, ranks=(1,), rows=(2,), ablate=True
    )

    assert grid(done) == {"1x2": ("crashed", "")}
    assert "refused its own arguments" in done.of("ablation")[0].data["because"]


def test_a_command_of_the_users_own_gets_ranks_and_rows(script: Climb, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.sh"
    launcher.write_text(
        'for rank in $(seq 0 $(($1 - 1))); do RANK=$rank WORLD_SIZE=$1 "$2" train.py --rows $3 &'
        " done\nwait\n"
    )
    command = (shutil.which("sh") or "/bin/sh", str(launcher), "{ranks}", sys.executable, "{rows}")
    done = script(
        TRAIN + "steps(3)\nprint('rows', asked.rows)\ntime.sleep(0.3)\n",
        form="command",
        command=command,
        nproc=None,
        ranks=(1, 2),
        rows=(5,),
    )

    assert {cell: outcome for cell, (outcome, _) in grid(done).items()} == {
        "1x5": "passed",
        "2x5": "passed",
    }
    assert any("rows 5" in one.data["head"] for one in done.of("output", "user_script@2x5"))


def test_a_climb_goes_on_where_it_ended_and_asks_nothing_again(
    script: Climb, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    body = (
        TRAIN
        + f"open({str(marks)!r}, 'a').write(f'{{world}}x{{asked.rows}} ')\nsteps(3)\n"
        + "if asked.rows >= 100:\n    sys.exit(3)\n"
    )
    script(body, argv=ARGV, nproc=None, ranks=(1,), rows=(2,))
    with (tmp_path / "case" / "evidence.jsonl").open("a") as file:
        file.write('{"id": "E99", "torn')
    done = script(
        body, argv=ARGV, nproc=None, ranks=(1,), rows=(2, 100), resume=str(tmp_path / "case")
    )

    assert marks.read_text().split() == ["1x2", "1x100"]
    assert {cell: outcome for cell, (outcome, _) in grid(done).items()} == {
        "1x2": "passed",
        "1x100": "crashed",
    }
    assert [one.data["kept"] for one in done.of("resumed")] == [["user_script@1x2"]]
    assert done.rung("user_script@1x100")["resumed"] == 1
    assert len({one.id for one in done.evidence}) == len(done.evidence)


def test_what_was_not_answered_is_asked_again_and_its_evidence_is_void(
    script: Climb, tmp_path: Path
) -> None:
    body = TRAIN + "steps(3)\n"
    first = script(body, argv=ARGV, nproc=None, ranks=(1,), rows=(2, 100), timeout_s=1e-6)
    assert grid(first) == {"1x2": ("skipped", "time"), "1x100": ("skipped", "time")}
    done = script(
        body, argv=ARGV, nproc=None, ranks=(1,), rows=(2, 100), resume=str(tmp_path / "case")
    )

    (resumed,) = done.of("resumed")
    standing = {
        one.cell: one.data["outcome"]
        for one in done.of("rung")
        if one.id not in resumed.data["void"] and one.data["probe"] == "user_script"
    }
    assert standing == {"user_script@1x2": "passed", "user_script@1x100": "passed"}
    assert [
        len([one for one in done.of(kind) if one.id not in resumed.data["void"]])
        for kind in ("plan", "lint")
    ] == [1, 1]


def test_the_case_of_another_command_is_refused(script: Climb, tmp_path: Path) -> None:
    script(TRAIN + "steps(3)\n", argv=ARGV, nproc=None, ranks=(1,), rows=(2,))
    before = (tmp_path / "case" / "evidence.jsonl").read_bytes()

    with pytest.raises(UsageError, match="belongs to another command: train"):
        script(
            TRAIN,
            argv=("--rows", "{rows}", "--mode", "good"),
            nproc=None,
            ranks=(1,),
            rows=(2,),
            resume=str(tmp_path / "case"),
        )
    assert (tmp_path / "case" / "evidence.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rows": (2,), "argv": ("train.py",)}, "it has no {rows}"),
        ({"rows": (), "argv": ("train.py", "{rows}")}, "no --rows says how many"),
        (
            {
                "rows": (2,),
                "ranks": (1, 2),
                "form": "command",
                "argv": (sys.executable, "train.py", "{rows}"),
            },
            "it has no {ranks}",
        ),
        (
            {"rows": (2,), "argv": ("train.py", "{rows}"), "resume": "nowhere"},
            "There is no folder nowhere",
        ),
        (
            {"rows": (2,), "argv": ("train.py", "{rows}"), "resume": "a", "case": "b"},
            "--case names another",
        ),
    ],
)
def test_sizes_that_cannot_reach_the_command_are_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    climbed: Climb,
    asked: dict[str, object],
    words: str,
) -> None:
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        climbed(**{"form": "launch", **asked})

    assert words in caught.value.says
    assert caught.value.do
