"""What holds for every probe: the header, the answer to nonsense, and events that harm nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.probes.conftest import PROBES, RunProbe, environment, events_of
from trainprobe.checks import BUDGETS, SLOTS

# A program without a header is run by no ladder and no list of checks: whoever starts it tells it
# all.
PROGRAMS = sorted(
    path.stem
    for path in PROBES.glob("*.py")
    if not path.name.startswith("_")
    and path.read_text(encoding="utf-8").startswith("# /// trainprobe")
)
LIGHT = ["host", "environment"]  # those that need no torch
NEEDS = {"imports", "torch", "gpu", "nccl", "gloo", "script", "ranks>=2", "dataset", "model"}


def as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def header(name: str) -> dict[str, object]:
    lines = (PROBES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# /// trainprobe"
    block = lines[1 : lines.index("# ///")]
    read = yaml.safe_load("\n".join(line[2:] for line in block))
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_header_says_what_the_ladder_must_know(name: str) -> None:
    read = header(name)
    assert set(read) - {"ladder", "about"} == {
        "rung",
        "question",
        "scope",
        "needs",
        "timeout_s",
        "climbs",
        "after",
        "means",
    } | ({"ready", "slots"} if "ready" in read else set())
    assert read.get("ready", "quick") in BUDGETS
    assert set(SLOTS) >= set(map(str, as_list(read.get("slots", []))))
    assert "ladder" not in read or (read["ladder"] is False and "ready" in read)
    assert isinstance(read["rung"], int)
    assert str(read["question"]).endswith("?")
    assert read["scope"] in ("host", "ranks")
    assert isinstance(read["needs"], list)
    assert set(read["needs"]) <= NEEDS
    assert isinstance(read["after"], list)
    assert set(read["after"]) <= set(PROGRAMS)
    assert read["climbs"] in ([], ["ranks"])
    assert isinstance(read["timeout_s"], int)
    assert 10 <= read["timeout_s"] <= 300
    assert str(read["means"]).endswith(".")


def test_a_rung_stands_above_those_that_it_comes_after() -> None:
    rungs = {name: int(str(header(name)["rung"])) for name in PROGRAMS}
    for name in PROGRAMS:
        after = header(name)["after"]
        assert isinstance(after, list)
        assert all(rungs[other] < rungs[name] for other in after)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unknown_flag_is_an_answer_and_no_crash(name: str, run_probe: RunProbe) -> None:
    done = run_probe(name, "--no-such-flag")
    assert done.exit_code == 11
    assert done.answer == "cannot"
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "env", [{"RANK": "two"}, {"RANK": "4", "WORLD_SIZE": "2"}, {"WORLD_SIZE": "0"}]
)
@pytest.mark.parametrize("name", ["gloo_control", "train_step"])
def test_an_impossible_rank_is_an_answer(
    name: str, env: dict[str, str], run_probe: RunProbe
) -> None:
    done = run_probe(name, env=env)
    assert (done.exit_code, done.answer) == (11, "cannot")


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("events", ["/nonexistent/events", "/dev/full", "/"])
def test_an_events_file_that_cannot_be_written_changes_nothing(
    name: str, events: str, run_probe: RunProbe
) -> None:
    usual, done = run_probe(name), run_probe(name, env={"TRAINPROBE_EVENTS": events})
    assert done.exit_code == usual.exit_code
    assert done.output.splitlines()[-1] == usual.output.splitlines()[-1]


def test_a_pipe_without_reader_as_events_file_does_not_hang(
    tmp_path: Path, run_probe: RunProbe
) -> None:
    pipe = tmp_path / "pipe"
    subprocess.run(["mkfifo", str(pipe)], check=True)
    assert run_probe("host", env={"TRAINPROBE_EVENTS": str(pipe)}).exit_code in (0, 10)


@pytest.mark.parametrize("redirect", ["exec >&-", "exec >/dev/full"])
def test_a_stdout_that_cannot_be_written_changes_nothing(
    redirect: str, run_probe: RunProbe
) -> None:
    usual, done = run_probe("host"), run_probe("host", shell=redirect)
    assert done.exit_code == usual.exit_code
    assert done.answer == usual.answer


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
import _emit
for place in range(200):
    _emit.note("x" * (place * 37 % 5000), place=place)
"""


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", WRITER, str(PROBES)]
    writers = [
        subprocess.Popen(
            command,
            env=environment(TRAINPROBE_EVENTS=str(events), RANK=str(rank)),
            stdout=subprocess.DEVNULL,
        )
        for rank in range(4)
    ]
    assert [writer.wait(timeout=30) for writer in writers] == [0, 0, 0, 0]
    read = events_of(events)
    assert len(read) == 800
    for rank in range(4):
        assert [one["seq"] for one in read if one["rank"] == rank] == list(range(1, 201))


def test_what_json_does_not_know_and_what_is_too_long_still_gives_a_line(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import _emit; _emit.note('a', odd=object(),"
        " text=chr(0xD800)); _emit.note('b', long='y' * 2_000_000)"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(PROBES)],
        env=environment(TRAINPROBE_EVENTS=str(events)),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    odd, long = (json.loads(line) for line in events.read_bytes().splitlines())
    assert odd["odd"].startswith("<object object")
    assert long["cut"] is True
    assert len(long["long"]) == 2000


def test_a_probe_does_not_leave_its_folder_on_the_import_path() -> None:
    program = (
        "import runpy, sys; sys.argv = ['host.py']; sys.path.insert(0, sys.argv[0])\ntry:"
        " runpy.run_path(%r, run_name='__main__')\nexcept SystemExit: print(%r in sys.path)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program % (str(PROBES / "host.py"), str(PROBES))],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
