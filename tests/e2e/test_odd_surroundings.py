"""Full disks, readers that leave, commands that train nothing, odd folders and bare
environments: a report, and all evidence kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.e2e.tool import assert_report, call, environment, shown, tool_words

HOST = ("diagnose", "--nproc", "2", "--only", "host")
SCRIPT = ("diagnose", "--nproc", "2", "--only", "user_script")


def reports_in(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("trainprobe-*/report.txt"))


# ---------------------------------------------------------------------------------------- full disk


@pytest.mark.root
@pytest.mark.parametrize("kib", [12, 16, 24])
def test_a_disk_that_fills_up_loses_no_report(kib: int, token: str, job_folder: Path) -> None:
    """A tmpfs of some pages, mounted where only this run can see it."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a small disk, and it takes unshare")
    small = job_folder / "small"
    small.mkdir()
    mount = (
        f'mount -t tmpfs -o size={kib}k none "{small}" || exit 99; "$@"; code=$?; cp -r "{small}"'
        f' "{job_folder}/copy"; exit $code'
    )
    words = (
        "diagnose",
        "--nproc",
        "2",
        "--only",
        "host,environment",
        "--case",
        str(small / "case"),
        "--json",
        "-",
    )
    done = call(
        words, job_folder, environment(token), prefix=("unshare", "-m", "sh", "-c", mount, "sh")
    )
    if done.returncode == 99:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, shown(done)
    report = json.loads(done.stdout)
    assert [
        row["outcome"] for row in report["ladder"] if row["probe"] in ("host", "environment")
    ] == ["passed", "passed"]
    assert "Traceback" not in done.stderr, shown(done)
    assert "No space left on device" in " ".join(done.stderr.split()), shown(done)
    lines = (job_folder / "copy" / "case" / "evidence.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [
        f"E{place}" for place in range(1, len(lines) + 1)
    ], "what is there is whole"


def test_no_room_at_all_for_a_case(token: str, job_folder: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a small disk, and it takes unshare")
    small = job_folder / "small"
    small.mkdir()
    mount = (
        f'mount -t tmpfs -o size=4k none "{small}" || exit 99; head -c 4096 /dev/zero >'
        f' "{small}/full"; exec "$@"'
    )
    done = call(
        (*HOST, "--case", str(small / "case")),
        job_folder,
        environment(token),
        prefix=("unshare", "-m", "sh", "-c", mount, "sh"),
    )
    if done.returncode == 99:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    assert done.returncode == 2, shown(done)
    assert done.stderr.startswith("trainprobe: The case folder"), shown(done)
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_json_file_that_turns_out_unwritable_costs_no_report(
    token: str, job_folder: Path
) -> None:
    done = call((*HOST, "--json", "/dev/full"), job_folder, environment(token))
    assert_report(done, 0, "HEALTHY")
    assert done.stderr.splitlines()[-1].startswith(
        "trainprobe: /dev/full was not written: No space left on device."
    ), shown(done)


# ------------------------------------------------------------------------------ stdout and terminal


@pytest.mark.parametrize("to_json", [(), ("--json", "-")], ids=["text", "json"])
def test_a_reader_that_leaves_early(to_json: tuple[str, ...], token: str, job_folder: Path) -> None:
    """As `| head -1` does, but sure to be gone: the reading end is closed before a word is
    written.
    """
    read_end, write_end = os.pipe()
    os.close(read_end)
    with (job_folder / "err").open("wb") as err:
        process = subprocess.Popen(
            tool_words(*HOST, *to_json),
            cwd=job_folder,
            env=environment(token),
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=err,
        )
        os.close(write_end)
        assert process.wait(60) == 0
    said = (job_folder / "err").read_text()
    assert "Traceback" not in said, said
    assert "rror" not in said, said
    assert len(reports_in(job_folder)) == 1


def test_closed_streams(token: str, job_folder: Path) -> None:
    words = ["sh", "-c", 'exec "$@" 2>&- <&-', "sh", *tool_words(*HOST)]
    done = subprocess.run(
        words,
        cwd=job_folder,
        env=environment(token),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert_report(done, 0, "HEALTHY")


@pytest.mark.parametrize(
    "surroundings",
    [
        {"TERM": "dumb"},
        {"LANG": "C", "LC_ALL": "C"},
        {"PYTHONIOENCODING": "ascii"},
        {"COLUMNS": "7", "TERM": "nonsense"},
    ],
)
def test_poor_terminals(surroundings: dict[str, str], token: str, job_folder: Path) -> None:
    done = call(HOST, job_folder, environment(token, **surroundings))
    assert done.returncode == 0, shown(done)
    assert "HEALTHY" in done.stdout, shown(done)
    assert "Traceback" not in done.stderr, shown(done)
    assert "\x1b" not in done.stdout + done.stderr


def test_a_home_that_is_not_there(token: str, job_folder: Path) -> None:
    env = environment(token)
    for name in ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME"):
        env.pop(name, None)
    assert_report(call(HOST, job_folder, env), 0, "HEALTHY")


@pytest.mark.parametrize(
    "name",
    [
        "with a space",
        "with 'quotes' and \"more\"",
        "with\na line end",
        "$(touch was-here)",
        "ünï-字",
        "-rf",
    ],
)
def test_a_folder_of_an_odd_name(name: str, token: str, job_folder: Path) -> None:
    here = job_folder / name
    here.mkdir()
    (here / "train it.py").write_text("raise SystemExit(3)\n")
    done = call(
        (
            "diagnose",
            "--nproc",
            "1",
            "--only",
            "host,user_script",
            "--python",
            sys.executable,
            "--",
            "train it.py",
        ),
        here,
        environment(token),
    )
    assert_report(done, 1, "CRASHED", "exit code 3")
    assert "\x1b" not in done.stdout
    assert len(reports_in(here)) == 1
    assert sorted(os.listdir(job_folder)) == [name]


# ---------------------------------------------------------------------- commands that train nothing


def test_a_command_that_does_nothing(token: str, job_folder: Path) -> None:
    done = call((*SCRIPT, "--", "true"), job_folder, environment(token))
    assert_report(done, 3, "UNDETERMINED", "nothing watched it from inside")


def test_a_command_that_only_fails(token: str, job_folder: Path) -> None:
    """Of the ranks that nobody has seen nothing is said."""
    done = call((*SCRIPT, "--", "false"), job_folder, environment(token))
    assert_report(done, 1, "CRASHED", "exit code 1")
    assert "ank 1" not in done.stdout.replace("exit code 1", ""), shown(done)


def test_a_command_that_only_waits(token: str, job_folder: Path) -> None:
    done = call((*SCRIPT, "--timeout", "4", "--", "sleep", "1000"), job_folder, environment(token))
    assert_report(done, 1, "HUNG", "No output and no step within 4 s")


def test_a_time_that_is_over_before_the_top(token: str, job_folder: Path) -> None:
    done = call(
        (
            "diagnose",
            "--nproc",
            "2",
            "--only",
            "host,import_memory",
            "--imports",
            "json",
            "--timeout",
            "0.01",
        ),
        job_folder,
        environment(token),
    )
    assert_report(done, 3, "UNDETERMINED", "the time limit of the whole climb")


# ------------------------------------------------------------------------ interpreter without torch


def test_an_interpreter_without_torch(token: str, job_folder: Path) -> None:
    """What needs none still runs, and the report says what to install."""
    venv.create(job_folder / "bare", with_pip=False, symlinks=True)
    python = job_folder / "bare" / "bin" / "python"
    env = environment(token)
    env["PYTHONPATH"] = env.get("PYTHONPATH", "").partition(os.pathsep)[0]
    done = call(("diagnose", "--nproc", "2", "--python", str(python)), job_folder, env)
    assert done.returncode in (1, 3), shown(done)
    assert "Traceback" not in done.stderr, shown(done)
    said = "".join(done.stdout.split())  # a path may be broken over two lines
    assert f"{python}-mpipinstalltorch" in said, shown(done)
    ladder = json.loads(next(job_folder.glob("trainprobe-*/diagnosis.json")).read_text())["ladder"]
    outcomes = {row["probe"]: row["outcome"] for row in ladder}
    assert outcomes["host"] == "passed"
    assert outcomes["environment"] in ("passed", "failed", "not_measured")
    assert outcomes["gloo_control"] == outcomes["train_step"] == "skipped"
