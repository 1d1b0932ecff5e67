"""The check programs of one node: side by side, each with its own deadline, and none beyond the
hard stop.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.ready import stuck_checks
from trainprobe.ready.local_checks import CheckResult, CheckTask, check_programs, run_checks
from trainprobe.ready.stuck_checks import Marker, still_there

HEAD = (
    "# /// trainprobe\n# rung: 1\n# question: Is it well?\n# ready: {budget}\n# slots: [{slots}]\n#"
    " timeout_s: {timeout}\n# ///\n"
)
EMIT = f"import sys; sys.path.insert(0, {str(ROOT / 'probes')!r}); import _emit\n"


def program(
    folder: Path,
    name: str,
    body: str,
    *,
    budget: str = "quick",
    slots: str = "step",
    timeout: float = 10,
) -> None:
    (folder / f"{name}.py").write_text(
        HEAD.format(budget=budget, slots=slots, timeout=timeout) + EMIT + body, encoding="utf-8"
    )


def told(wanted: CheckTask) -> tuple[dict[str, CheckResult], dict[str, CheckResult], float]:
    """Return what each program said as checks, as values, and how long all took."""
    found: list[CheckResult] = []
    began = time.monotonic()
    run_checks(wanted, found.append)
    took_s = time.monotonic() - began
    return (
        {one.source: one for one in found if one.kind == "checks"},
        {one.source: one for one in found if one.kind == "values"},
        took_s,
    )


REAL_FOLDERS = stuck_checks._folders


@pytest.fixture(autouse=True)
def own_marks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What another run on this machine has left behind is no business of these tests."""
    folder = tmp_path_factory.mktemp("marks")
    monkeypatch.setattr(stuck_checks, "IN_MEMORY", (str(folder),))
    monkeypatch.setattr(stuck_checks, "_folders", lambda: [str(folder)])
    return folder


def test_a_program_that_hangs_costs_its_own_deadline_and_no_other_findings(
    tmp_path: Path, own_marks: Path
) -> None:
    program(
        tmp_path,
        "good",
        "_emit.check('lim.nofile', 'warn', 'few', 7, fix='more')\n_emit.emit('value',"
        " name='limit.nofile', value=7)\n_emit.result('yes', '')\n",
    )
    program(
        tmp_path,
        "slow",
        "with _emit.phase('fs.hang'):\n import os, time\n os.fork() or os.setsid()\n"
        " time.sleep(60)\n",
        timeout=1,
    )
    program(tmp_path, "bad", "_emit.check('shm.size', 'ok', 'much')\nraise OSError('gone')\n")
    program(tmp_path, "later", "_emit.result('yes', '')\n", budget="deep")
    program(tmp_path, "elsewhere", "_emit.result('yes', '')\n", slots="prolog")
    checks, values, took_s = told(CheckTask(stop_s=20, folder=str(tmp_path)))
    assert set(checks) == {"good", "slow", "bad"}
    assert (checks["good"].outcome, checks["good"].data["checks"]) == (
        "ok",
        [{"id": "lim.nofile", "state": "warn", "value": 7, "says": "few", "fix": "more"}],
    )
    assert values["good"].data == {"values": {"limit.nofile": 7}}
    assert (checks["slow"].outcome, checks["slow"].data["open"]) == ("timed_out", "fs.hang")
    assert (checks["bad"].outcome, [row["id"] for row in checks["bad"].data["checks"]]) == (
        "crashed",
        ["shm.size"],
    )
    assert "OSError: gone" in checks["bad"].reason
    assert took_s < 10
    assert list(own_marks.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "state", "says"),
    [
        ("", "fail", "No such file"),
        ("#!/bin/sh\necho 'python: cannot open libx.so' >&2\nexit 127\n", "fail", "libx.so"),
        ("#!/bin/sh\nprintf 3.6.8\n", "unknown", "is Python 3.6.8; the check programs need 3.9"),
        (f'#!/bin/sh\nexec {sys.executable} "$@"\n', "ok", "starts, and is Python 3."),
    ],
)
def test_a_python_of_the_job_that_does_not_start_is_a_failed_check(
    text: str, state: str, says: str, tmp_path: Path
) -> None:
    """The tool's own runs the programs that do not speak of the job's."""
    python = tmp_path / "python"
    if text:
        python.write_text(text, encoding="utf-8")
        python.chmod(0o755)
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs, "machine", "_emit.result('yes', '')\n")
    program(programs, "versions", "_emit.result('yes', '')\n")
    path = programs / "versions.py"
    path.write_text(path.read_text().replace("# ready:", "# about: job_python\n# ready:"))
    task = CheckTask(stop_s=20, folder=str(programs), interpreter=str(python))
    checks, values, _ = told(task)
    (row,) = checks["job_python"].data["checks"]
    assert (row["id"], row["state"], says in row["says"]) == ("py.start", state, True)
    well = state == "ok"
    assert (checks["machine"].outcome, checks["versions"].outcome) == (
        "ok",
        "ok" if well else "unavailable",
    )
    assert (values["launch_plan"].data["values"] if values else {}) == (
        {"version.python": "3.6.8"} if state == "unknown" else {}
    )


def test_all_is_over_at_the_hard_stop(tmp_path: Path) -> None:
    program(
        tmp_path, "endless", "import time\nwith _emit.phase('x'):\n time.sleep(60)\n", timeout=60
    )
    checks, _, took_s = told(CheckTask(stop_s=2, folder=str(tmp_path)))
    assert checks["endless"].outcome == "timed_out"
    assert took_s < 4  # 2 s and the pace of a busy machine


def test_a_check_that_its_program_did_not_come_to_is_not_known(tmp_path: Path) -> None:
    program(
        tmp_path,
        "storage",
        "import time\nwith _emit.phase('fs.hang'):\n time.sleep(60)\n",
        timeout=1,
    )
    checks, _, _ = told(CheckTask(stop_s=10, folder=str(tmp_path)))
    data = checks["storage"].data
    assert [(row["id"], row["state"]) for row in data["checks"]] == [("fs.hang", "unknown")]
    assert {"fs.mounts", "shm.alloc"} <= {row["id"] for row in data["dropped"]}


def test_the_checks_that_a_site_leaves_out_are_told_as_left_out(tmp_path: Path) -> None:
    program(tmp_path, "one", "_emit.check('lim.nofile', 'fail', 'few')\n_emit.result('no', '')\n")
    checks, _, _ = told(CheckTask(stop_s=10, folder=str(tmp_path), leave_out=("lim.nofile",)))
    assert checks["one"].data["checks"] == []
    assert checks["one"].data["dropped"] == [
        {"id": "lim.nofile", "reason": "the site leaves it out"}
    ]


def test_our_own_programs_answer_without_home_path_and_a_place_to_write() -> None:
    code = (
        "from trainprobe.ready.local_checks import CheckTask, run_checks\nrun_checks(CheckTask(stop_s=40), lambda"
        " told: print(told.kind, told.source, told.outcome, told.reason))"
    )
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"]
    done = subprocess.run(
        argv,
        cwd="/proc",
        env={"TMPDIR": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[1] for row in rows if row[0] == "checks"} >= {
        spec.name for spec in check_programs("quick", "step")
    }, done.stderr
    assert {row[2] for row in rows} == {"ok"}, done.stdout


def test_nothing_is_started_while_an_earlier_program_still_lives(
    tmp_path: Path, own_marks: Path
) -> None:
    program(tmp_path, "good", "_emit.result('yes', '')\n", slots="step, prolog")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as lives:
        ticks = int(
            Path(f"/proc/{lives.pid}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[19]
        )
        marker = Marker()
        marker.close({lives.pid: (ticks, "storage")})
        assert [(left.pid, left.check) for left in still_there()] == [(lives.pid, "storage")]
        checks, _, took_s = told(CheckTask(stop_s=10, slot="prolog", folder=str(tmp_path)))
        assert (checks["good"].outcome, "storage" in checks["good"].reason, took_s < 1) == (
            "unavailable",
            True,
            True,
        )
        program(tmp_path, "storage", "_emit.result('yes', '')\n")
        checks, _, _ = told(
            CheckTask(stop_s=10, folder=str(tmp_path))
        )  # in the user's own step only the same program waits
        assert (checks["good"].outcome, checks["storage"].outcome) == ("ok", "unavailable")
        lives.kill()
        lives.wait()
    assert still_there() == []
    assert list(own_marks.iterdir()) == []
    assert told(CheckTask(stop_s=10, folder=str(tmp_path)))[0]["good"].outcome == "ok"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"pid": 1, "ticks": 0, "space": "another boot", "began": 0, "below": []}',
        '{"below": 7}',
    ],
)
def test_a_mark_that_is_not_ours_beyond_doubt_is_no_mark(own_marks: Path, text: str) -> None:
    (own_marks / f"{stuck_checks.PREFIX}{os.getuid()}-1-1").write_text(text, encoding="utf-8")
    (own_marks / f"{stuck_checks.PREFIX}{os.getuid()}-2-2").symlink_to("/etc/passwd")
    assert still_there() == []
    assert len(list(own_marks.iterdir())) == 2  # and it is left where it is
    for path in own_marks.iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    assert still_there() == []
    assert len(list(own_marks.iterdir())) == (2 if text else 1)  # an old one without a word goes


def test_files_of_others_with_our_names_do_not_hide_ours(own_marks: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for number in range(stuck_checks.MOST_FILES + 5):
        theirs = own_marks / f"{stuck_checks.PREFIX}0-0-{number}"
        theirs.write_text("{}", encoding="utf-8")
        os.chown(theirs, 65534, 65534)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as lives:
        ticks = int(
            Path(f"/proc/{lives.pid}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[19]
        )
        Marker().close({lives.pid: (ticks, "storage")})
        found = still_there()
        lives.kill()
    assert [left.pid for left in found] == [lives.pid]


@pytest.mark.parametrize(("uid", "of_root"), [(0, True), (1000, False)])
def test_root_keeps_its_marks_where_nobody_else_can_write(
    uid: int, of_root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: uid)
    assert (REAL_FOLDERS()[0] == stuck_checks.OF_ROOT) == of_root


@pytest.fixture
def asleep(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("a mount that never answers needs root and /dev/fuse")
    folder = tmp_path / "asleep"
    folder.mkdir()
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/programs/dead_mount.py"), str(folder), "asleep"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    with server.stdout as said:
        if said.readline() != "ready\n":
            pytest.skip("this kernel lets nobody mount here")
        yield folder
    server.terminate()
    server.wait(10)


@pytest.mark.root
def test_a_program_that_the_kernel_holds_is_left_behind_named_and_remembered(
    tmp_path: Path, asleep: Path, own_marks: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    program(
        programs,
        "stuck",
        f"import os\nwith _emit.phase('fs.hang'):\n os.listdir({str(asleep)!r})\n",
        timeout=1,
    )
    program(programs, "good", "_emit.result('yes', '')\n")
    checks, _, took_s = told(CheckTask(stop_s=6, folder=str(programs)))
    assert (checks["good"].outcome, checks["stuck"].outcome) == ("ok", "timed_out")
    assert "cannot be killed" in checks["stuck"].reason
    assert took_s < 7
    assert [left.check for left in still_there()] == ["stuck"]
    checks, _, _ = told(CheckTask(stop_s=6, folder=str(programs)))
    assert (checks["good"].outcome, checks["stuck"].outcome) == ("ok", "unavailable")
    assert len(list(own_marks.iterdir())) == 1
