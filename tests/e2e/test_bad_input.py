"""Wrong words, wrong files, wrong interpreters: one sentence with the way out, the right exit
code, and nothing left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.tool import assert_one_sentence, call, environment

HOST = ("diagnose", "--nproc", "2", "--only", "host")


Refused = Callable[..., None]


@pytest.fixture
def run(token: str, job_folder: Path) -> Refused:
    """Run the tool in the job's folder and check that a refusal leaves no new file there."""

    def start(
        *words: str,
        code: int = 2,
        parts: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        **env: str,
    ) -> None:
        before = sorted(os.listdir(job_folder))
        done = call(words, job_folder, environment(token, **env), prefix=prefix)
        assert_one_sentence(done, code, *parts)
        assert sorted(os.listdir(job_folder)) == before, "a run that never began leaves nothing"

    return start


# ------------------------------------------------------------------------------------------- script


def test_a_script_that_is_not_there(run: Refused) -> None:
    run(*HOST, "--", "train.py", parts=("The script train.py does not exist", "Check the path"))


def test_a_script_with_a_syntax_error_is_told_with_its_line(run: Refused, job_folder: Path) -> None:
    (job_folder / "train.py").write_text("import torch\n\n\ndef loss(a, b:\n    return a\n")
    run(*HOST, "--", "train.py", parts=("train.py:4", "def loss(a, b:"))


def test_a_folder_in_place_of_a_script(run: Refused, job_folder: Path) -> None:
    (job_folder / "train.py").mkdir()
    run(*HOST, "--", "train.py", parts=("train.py is a folder",))


def test_a_script_of_random_bytes(run: Refused, job_folder: Path) -> None:
    (job_folder / "train.py").write_bytes(bytes(range(256)))
    run(*HOST, "--", "train.py", parts=("train.py",))


def test_a_script_that_may_not_be_read(run: Refused, job_folder: Path) -> None:
    script = job_folder / "train.py"
    script.write_text("import torch\n")
    script.chmod(0)
    job_folder.chmod(0o777)
    run(
        *HOST,
        "--",
        "train.py",
        parts=("train.py", "cannot be read", "Permission denied"),
        prefix=as_somebody_else(),
        HOME="/nonexistent",
    )


def as_somebody_else() -> tuple[str, ...]:
    """Words before a command that take away root's right to read and write everything; empty
    where we are not root.
    """
    if os.geteuid() != 0:
        return ()
    words = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    try:
        done = subprocess.run(
            [*words, sys.executable, "-c", "import typer"],
            cwd="/",
            capture_output=True,
            timeout=20,
            check=False,
        )
    except OSError as error:
        pytest.skip(f"as root everything may be read, and this cannot be given up: {error}")
    if done.returncode:
        pytest.skip("as root everything may be read, and another user cannot run this Python")
    return words


# -------------------------------------------------------------------------------------- interpreter


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "given", ["/nonexistent/bin/python", "./python", "no-such-python-anywhere"]
)
def test_an_interpreter_that_is_not_there(run: Refused, given: str) -> None:
    run(*HOST, "--python", given, parts=(given.removeprefix("./"), "--python"))


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho Python 3.11\n",
        "#!/bin/sh\nexit 3\n",
        "no program at all",
        "#!/nonexistent/shell\n",
    ],
)
def test_an_interpreter_that_is_no_python(run: Refused, text: str, job_folder: Path) -> None:
    run(
        *HOST,
        "--python",
        program(job_folder, "py", text),
        parts=(f"{job_folder}/py", "Give the path of a Python with --python."),
    )


@pytest.mark.slow
@pytest.mark.soak  # twenty seconds, which is how long it is waited for
def test_an_interpreter_that_never_answers(run: Refused, job_folder: Path) -> None:
    run(
        *HOST,
        "--python",
        program(job_folder, "py", "#!/bin/sh\nexec sleep 1000\n"),
        parts=("did not answer within 20 s",),
    )


# ----------------------------------------------------------------------------------- numbers, names


@pytest.mark.parametrize("number", ["0", "-1", "x", "1e9", "2.5", "", "٣", "99999999999999999999"])
@pytest.mark.parametrize("option", ["--nproc", "--gpus"])
def test_a_number_of_ranks_that_is_none(run: Refused, option: str, number: str) -> None:
    run("diagnose", option, number, parts=(f"{option} needs a whole number from 1 to 1024",))


@pytest.mark.parametrize("seconds", ["soon", "nan", "inf", "-3", "0", "1e99", ""])
def test_a_timeout_that_is_none(run: Refused, seconds: str) -> None:
    run(*HOST, "--timeout", seconds, parts=("--timeout needs seconds, more than 0",))


def test_more_gpus_than_there_are(run: Refused) -> None:
    run("diagnose", "--gpus", "1000", parts=("--gpus 1000 was asked for", "--nproc 1000"))


@pytest.mark.parametrize("option", ["--only", "--skip"])
def test_a_rung_that_is_none(run: Refused, option: str) -> None:
    run(
        "diagnose",
        "--nproc",
        "2",
        option,
        "host,gloo_controll",
        parts=("gloo_controll", "Did you mean gloo_control?"),
    )


def test_a_rung_that_resembles_none(run: Refused) -> None:
    run(
        "diagnose",
        "--nproc",
        "2",
        "--only",
        "quux",
        parts=("quux", "host, environment, import_memory"),
    )


def test_an_option_that_is_none(run: Refused) -> None:
    run("diagnose", "--nprocs", "2", parts=("--nprocs",))


def test_a_script_without_the_dashes(run: Refused) -> None:
    run("diagnose", "--nproc", "2", "train.py", parts=("trainprobe diagnose -- train.py",))


def test_a_command_that_is_not_there(run: Refused) -> None:
    run(
        "diagnose",
        "--nproc",
        "2",
        "--",
        "nosuchlauncher",
        "{ranks}",
        parts=("nosuchlauncher is not on the PATH",),
    )


# ----------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- nproc\n- 2\n", ("trainprobe.yaml, line 1", "It is a list")),
        ("nproc: [1\nimports: {", ("trainprobe.yaml, line 2", "not YAML")),
        (
            "nproc: 2\n\ntimeoutz:\n  stall_s: 3\n",
            ("trainprobe.yaml, line 3", "Did you mean timeouts?"),
        ),
        ("nproc: two\n", ("trainprobe.yaml, line 1", "'two'")),
        ("timeouts:\n  stall_s: -4\n", ("trainprobe.yaml, line 2", "stall_s")),
        ("timeouts: 5\n", ("trainprobe.yaml, line 1", "timeouts")),
        ("only: gloo_control\nnproc: .inf\n", ("trainprobe.yaml, line",)),
        ("nproc: 2\nnproc: 3\n", ("trainprobe.yaml, line 2", "nproc")),
        ("? [a, b]\n: 3\n", ("trainprobe.yaml, line 1",)),
        ("a: &a [*a]\n", ("trainprobe.yaml, line 1",)),
        (
            "nproc: !!python/object/apply:os.system ['touch was-here']\n",
            ("trainprobe.yaml, line 1",),
        ),
        ("\x00\x01", ("trainprobe.yaml",)),
    ],
    ids=[
        "list",
        "broken",
        "wrong-key",
        "wrong-type",
        "negative",
        "no-mapping",
        "infinite",
        "twice",
        "key-is-list",
        "in-itself",
        "calls-python",
        "binary",
    ],
)
def test_settings_that_cannot_be_used(
    run: Refused, text: str, parts: tuple[str, ...], job_folder: Path
) -> None:
    (job_folder / "trainprobe.yaml").write_text(text)
    run("diagnose", "--nproc", "2", parts=parts)


def test_settings_that_are_not_there(run: Refused) -> None:
    run(*HOST, "--config", "mine.yaml", parts=("mine.yaml", "No such file"))


# ---------------------------------------------------------------------------------- where it writes


@pytest.mark.parametrize("target", ["/nonexistent/report.json", ".", "/dev/full/x"])
def test_a_json_file_that_cannot_be_written(run: Refused, target: str) -> None:
    run(*HOST, "--json", target, parts=(f"--json {target} cannot be written",))


def test_a_json_file_in_somebody_elses_folder(run: Refused, job_folder: Path) -> None:
    prefix = as_somebody_else()
    locked = job_folder / "locked"
    locked.mkdir(0o555)
    job_folder.chmod(0o755)
    run(
        *HOST,
        "--json",
        "locked/report.json",
        "--case",
        "/tmp/never",
        parts=("--json locked/report.json cannot be written",),
        prefix=prefix,
    )


def test_a_case_that_is_a_file(run: Refused, job_folder: Path) -> None:
    (job_folder / "case").write_text("precious")
    run(*HOST, "--case", "case", parts=("case", "there is a file of that name"))
    assert (job_folder / "case").read_text() == "precious"


def test_a_case_folder_with_other_things(run: Refused, job_folder: Path) -> None:
    (job_folder / "results").mkdir()
    (job_folder / "results" / "weights.pt").write_text("precious")
    run(
        *HOST,
        "--case",
        "results",
        parts=("results holds other things than a case", "weights.pt", "--case DIR"),
    )
    assert os.listdir(job_folder / "results") == ["weights.pt"]


@pytest.mark.parametrize("words", [(), ("--case", "mine")], ids=["default", "named"])
def test_a_folder_that_is_read_only(run: Refused, words: tuple[str, ...], job_folder: Path) -> None:
    prefix = as_somebody_else()
    job_folder.chmod(0o555)
    try:
        run(
            *HOST,
            *words,
            parts=("The case folder", "Permission denied", "--case DIR"),
            prefix=prefix,
        )
    finally:
        job_folder.chmod(0o755)


def test_a_case_where_nobody_can_write(run: Refused) -> None:
    run(*HOST, "--case", "/proc/case", parts=("The case folder /proc/case cannot be",))


@pytest.mark.parametrize(
    ("named", "do"),
    [
        (
            "nowhere",
            "Name logs, folders of logs, dumps, a case that trainprobe made, or - for stdin.",
        ),
        (
            "empty",
            "Name logs, folders of logs, dumps, a case that trainprobe made, or - for stdin.",
        ),
        ("foreign", "Name a folder that trainprobe made."),
    ],
)
def test_explain_without_a_case(run: Refused, named: str, do: str, job_folder: Path) -> None:
    (job_folder / "empty").mkdir()
    (job_folder / "foreign").mkdir()
    (job_folder / "foreign" / "case.json").write_text(json.dumps({"schema": "acme/3"}))
    run("explain", named, parts=(named, do))
