"""The administrators' slots: what each is given, what a finding means there, and how little is
loaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import ROOT, python_path
from trainprobe.checks import SLOTS as CHECK_SLOTS
from trainprobe.checks.outcome import ProgramResult, doubts_of, rows_of, verdict_of
from trainprobe.cli import ready_slot
from trainprobe.cli.app import help_of
from trainprobe.cli.ready_slot import FLAGS, VALUES, SlotOptions, is_for_a_slot, read
from trainprobe.errors import UsageError
from trainprobe.model.diagnosis import Report
from trainprobe.ready.slots import (
    ADMIN,
    PATH,
    PROLOG,
    SLOTS,
    STEP,
    TASKPROLOG,
    environment_of,
    exit_of,
    inconclusive_of,
    slot_of,
    stop_after,
)
from trainprobe.report.format import Layout
from trainprobe.report.formats import choose
from trainprobe.report.outcomes import passed
from trainprobe.report.slot_report import slot_report, slot_text
from trainprobe.site import Site

SURROUNDING = {
    "PATH": "/shared/bin",
    "LD_PRELOAD": "x.so",
    "PYTHONPATH": "/home/u",
    "SLURM_JOB_ID": "7",
    "SLURMD_NODENAME": "node1",
    "SLURM_CONF": "/c",
    "X": "1",
}
HEAVY = {
    "torch",
    "typer",
    "click",
    "rich",
    "psutil",
    "pynvml",
    "trainprobe.plugins",
    "trainprobe.causes",
    "trainprobe.judge",
    "trainprobe.facts",
    "trainprobe.ladder.climb",
}
COUNT = """
import sys
from trainprobe.cli import run
code = run(["ready", "--slot", "prolog", "--quiet"])
print(code, *sorted(name for name in sys.modules if not name.startswith("_")))
"""


def told(
    *checks: dict[str, Any], outcome: str = "ok", dropped: tuple[str, ...] = ()
) -> list[ProgramResult]:
    return [
        ProgramResult(
            "machine",
            outcome,
            "machine gave no answer within 5 s",
            {
                "checks": list(checks),
                "dropped": [{"id": name, "reason": "late"} for name in dropped],
            },
        )
    ]


def check(
    state: str, severity: str = "blocker", who: str = "admin", name: str = "x.y"
) -> dict[str, Any]:
    return {
        "id": name,
        "state": state,
        "severity": severity,
        "who": who,
        "says": f"{name} is {state}.",
    }


def reported(programs: list[ProgramResult]) -> Report:
    return slot_report(programs, host="node1", slot="prolog", budget="quick")


def test_the_slots_are_those_that_the_catalogue_speaks_of() -> None:
    assert sorted(SLOTS) == sorted(CHECK_SLOTS)
    assert (slot_of("prolog"), "step" in ADMIN, len(ADMIN)) == (PROLOG, False, len(CHECK_SLOTS) - 1)
    with pytest.raises(UsageError, match="There is no slot 'prologue'"):
        slot_of("prologue")


@pytest.mark.parametrize("name", ADMIN)
def test_no_slot_of_the_administrators_fails_a_node_for_being_unable_to_look(name: str) -> None:
    assert (SLOTS[name].inconclusive, SLOTS[name].stop_s <= 50) == ("pass", True)


def test_root_takes_nothing_of_what_surrounds_it() -> None:
    own = environment_of(
        PROLOG, SURROUNDING, Site(thresholds={"net.mtu": 9000.0}, paths=("/home", "/data"))
    )
    assert own == {
        "SLURM_JOB_ID": "7",
        "SLURMD_NODENAME": "node1",
        "PATH": PATH,
        "LC_ALL": "C.UTF-8",
        "HOME": "/",
        "TRAINPROBE_PATHS": "/home:/data",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRAINPROBE_SLOT": "prolog",
        "TRAINPROBE_THRESHOLDS": '{"net.mtu": 9000.0}',
    }
    assert environment_of(TASKPROLOG, SURROUNDING, Site()).items() >= SURROUNDING.items()


def test_the_site_decides_how_long_and_what_a_blind_look_means() -> None:
    site = Site(stop_s={"prolog": 12.0}, inconclusive={"prolog": "fail"})
    assert (
        stop_after(PROLOG, Site(), None),
        stop_after(PROLOG, Site(), 90.0),
        stop_after(PROLOG, site, 20.0),
        stop_after(PROLOG, site, 5.0),
    ) == (
        30,
        30,
        12,
        5,
    )
    assert (
        inconclusive_of(PROLOG, Site(), None),
        inconclusive_of(PROLOG, Site(), "fail"),
        inconclusive_of(PROLOG, site, "pass"),
    ) == ("pass", "fail", "fail")
    assert inconclusive_of(STEP, Site(), None) == "fail"


@pytest.mark.parametrize(
    ("programs", "verdict", "code", "strict"),
    [
        (told(check("ok")), "healthy", 0, 0),
        (told(check("fail")), "at-risk", 10, 10),
        (told(check("fail", who="user")), "at-risk", 0, 0),  # the node is as it should be
        (told(check("fail", "degraded")), "at-risk", 0, 0),
        (told(check("fail", "warning")), "healthy", 0, 0),
        (told(check("unknown")), "undetermined", 0, 10),
        (told(check("unknown", "degraded")), "healthy", 0, 0),
        (told(check("unknown"), check("fail", name="z")), "at-risk", 10, 10),
        (told(check("ok"), outcome="timed_out"), "undetermined", 0, 10),
        (
            told(check("ok"), outcome="timed_out", dropped=("lim.nofile",)),
            "healthy",
            0,
            0,
        ),  # what it did not come to is no blocker
        ([], "undetermined", 0, 10),
    ],
)
def test_only_a_blocker_that_an_administrator_must_mend_takes_a_node_away(
    programs: list[ProgramResult], verdict: str, code: int, strict: int
) -> None:
    rows = rows_of(programs)
    doubts = doubts_of(programs, rows)
    report = reported(programs)
    assert verdict_of(rows, doubts) == report.verdict == verdict
    assert (exit_of(rows, doubts, "pass"), exit_of(rows, doubts, "fail")) == (code, strict)
    assert passed(report) == (verdict == "healthy")
    assert slot_text(report).startswith(f"trainprobe: {verdict.upper()}. ")


def test_the_text_of_a_slot_names_what_fails_with_its_fix() -> None:
    row = {**check("fail", name="shm.size"), "fix": "mount -o remount,size=64g /dev/shm"}
    assert (
        slot_text(reported(told(row, check("ok", name="a.b"))))
        == "trainprobe: AT-RISK. shm.size is fail.\ntrainprobe: fail    shm.size (blocker, admin):"
        " shm.size is fail. [mount -o remount,size=64g /dev/shm]\n"
    )


def test_what_does_not_apply_has_not_passed() -> None:
    rows = [
        check(state, "degraded", name=f"{state}.{place}")
        for place, state in enumerate(["ok", "ok", "skip", "unknown", "warn"])
    ]
    says = (
        "node1 is ready: 2 checks passed, 1 with a warning, 1 not measured, which forbids nothing,"
        " 1 that do not apply."
    )
    assert reported(told(*rows)).says == says


def test_hostile_answers_of_a_program_become_rows_or_nothing() -> None:
    odd = [
        None,
        3,
        {"id": 7},
        {"id": "a", "state": {}, "says": ["x"], "severity": 9, "who": None, "value": {"x": 1}},
    ]
    report = reported(
        [
            ProgramResult("m", "ok", "", {"checks": odd, "dropped": "no"}),
            ProgramResult("n", "ok", "", {"checks": {"id": "b"}}),
        ]
    )
    assert [
        (row["id"], row["state"], row["severity"], row["who"])
        for row in report.extra["readiness"]["checks"]
    ] == [("a", "unknown", "degraded", "user")]


def test_every_form_holds_whatever_a_program_told() -> None:
    odd = "a\ufffe\x00\x1b[31m\u2028 ]]> <b> & \\ \" \ud800 | 'x'=1;\n# HELP x"
    rows: list[dict[str, Any]] = [
        {
            "id": odd,
            "state": "fail",
            "severity": "blocker",
            "who": "admin",
            **dict.fromkeys(("says", "fix", "threshold"), odd),
        }
    ]
    rows += [
        {"id": f"n{place}", "state": "ok", "value": value}
        for place, value in enumerate((float("nan"), float("inf"), 10**400, "1e999", True, [1]))
    ]
    report = slot_report(
        [ProgramResult("m", "ok", "", {"checks": rows})], host=odd, slot="prolog", budget="quick"
    )
    told = {
        name: choose("readiness", name).renders["readiness"](report, Layout(ended_at=1.0))
        for name in ("junit", "prometheus", "nagios", "json")
    }
    assert ET.fromstring(told["junit"]).attrib["failures"] == "2"  # the check and the verdict
    assert json.loads(told["json"])["verdict"] == "at-risk"
    assert told["nagios"].count("\n") == told["nagios"].count("|") == 1
    assert all(
        line.startswith(("# HELP trainprobe_", "# TYPE trainprobe_", "trainprobe_"))
        for line in told["prometheus"].splitlines()
    )


def test_the_command_line_of_a_slot() -> None:
    words = (
        "--slot=prolog --format nagios --inconclusive fail --timeout 9 --quick --json - --case c"
        " --quiet --drain node1,node2"
    )
    assert read(["ready", *words.split()], {}) == SlotOptions(
        "prolog",
        "nagios",
        "",
        "fail",
        9.0,
        "-",
        os.path.abspath("c"),
        quiet=True,
        drain=("node1", "node2"),
    )
    assert read(["ready"], {"TRAINPROBE_SLOT": "epilog"}) == SlotOptions("epilog")
    for wrong in (
        ["ready", "--deep"],
        ["ready", "--format", "xml"],
        ["ready", "--timeout", "nan"],
        ["ready", "--timeout"],
        ["ready", "more"],
    ):
        with pytest.raises(UsageError):
            read(wrong, {})


def test_only_the_administrators_slots_take_this_way() -> None:
    assert is_for_a_slot(["ready", "--slot", "prolog"], {})
    assert is_for_a_slot(["ready"], {"TRAINPROBE_SLOT": "healthcheck"})
    for argv in (
        ["ready"],
        ["ready", "--slot", "step"],
        ["ready", "--slot", "prolog", "--help"],
        ["diagnose", "--slot", "prolog"],
        ["ready", "--slot"],
    ):
        assert not is_for_a_slot(argv, {}), argv


def test_its_options_are_those_of_the_whole_command() -> None:
    told = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)( [A-Za-z|.,]+)?", help_of("ready"), re.MULTILINE)
    assert set(FLAGS) <= {name for name, value in told if not value}
    assert set(VALUES) <= {name for name, value in told if value}


def test_a_prolog_loads_little_and_nothing_of_strangers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=python_path() or {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    code, *modules = done.stdout.split()
    assert (code in ("0", "10"), HEAVY & set(modules)) == (True, set()), done.stderr
    assert len([name for name in modules if name.startswith("trainprobe")]) <= 60


def test_a_tool_that_cannot_be_loaded_takes_no_node_away(tmp_path: Path) -> None:
    """A Python that finds no module ends with 1, which must not be the code of a node at fault."""
    broken = tmp_path / "trainprobe"
    for script in ("prolog.sh", "epilog.sh", "health-check.sh"):
        codes = []
        for does in (
            f"exec {sys.executable} -c 'import no_such_tool'",
            "exit 10",
            "exit 2",
            "exit 70",
        ):
            broken.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
            broken.chmod(0o755)
            text = (ROOT / "docs" / "examples" / script).read_text(encoding="utf-8")
            for name, value in (
                ("TRAINPROBE", broken),
                ("LOG", tmp_path / "log"),
                ("METRICS", tmp_path / "metrics"),
            ):
                text = re.sub(rf"^{name}=\S*", f"{name}={value}", text, flags=re.MULTILINE)
            codes.append(
                subprocess.run(
                    ["sh", "-c", text], capture_output=True, check=False, timeout=30
                ).returncode
            )
        assert codes == [0, 1, 0, 0], script


@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh", "health-check.sh"])
def test_a_log_that_cannot_be_written_does_not_skip_the_check(script: str, tmp_path: Path) -> None:
    tool = tmp_path / "trainprobe"
    tool.write_text("#!/bin/sh\necho looked >&2\nexit 10\n", encoding="utf-8")
    tool.chmod(0o755)
    text = (ROOT / "docs" / "examples" / script).read_text(encoding="utf-8")
    for name, value in (
        ("TRAINPROBE", tool),
        ("LOG", tmp_path / "none" / "log"),
        ("METRICS", tmp_path / "none" / "metrics"),
    ):
        text = re.sub(rf"^{name}=\S*", f"{name}={value}", text, flags=re.MULTILINE)
    done = subprocess.run(["sh", "-c", text], capture_output=True, check=False, timeout=30)
    assert (done.returncode, b"looked" in done.stderr) == (1, True)


NO_FOLDER = """
import os, sys, tempfile
def none(*_, **__):
    raise FileNotFoundError(2, "No usable temporary directory found")
tempfile.gettempdir = tempfile.mkdtemp = tempfile.mkstemp = tempfile.TemporaryFile = tempfile.NamedTemporaryFile = none
if sys.argv[1] == "cannot":
    from trainprobe.ready import local_checks
    local_checks.run_checks = none
from trainprobe.cli import run
sys.exit(run(["ready", "--slot", "prolog", *sys.argv[2:]]))
"""


def slot_without_a_folder(*argv: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value
        for name, value in (python_path() or {"PYTHONPATH": str(ROOT)}).items()
        if name not in ("HOME", "TMPDIR")
    }
    return subprocess.run(
        [sys.executable, "-c", NO_FOLDER, *argv],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_checks_need_no_folder_that_can_be_written() -> None:
    done = slot_without_a_folder("can", "--format", "nagios")
    assert "could not be looked at" not in done.stderr
    assert re.match("TRAINPROBE (OK|WARNING|CRITICAL|UNKNOWN) - .*check", done.stdout)
    assert "time=" in done.stdout


def test_a_monitor_is_told_that_nothing_could_be_checked() -> None:
    done = slot_without_a_folder("cannot", "--format", "nagios", "--quiet")
    assert (
        done.returncode,
        done.stdout.startswith("TRAINPROBE UNKNOWN - The node could not be looked at"),
    ) == (3, True)
    wrong = slot_without_a_folder("can", "--format=nagios", "--bogus")
    assert (wrong.returncode, wrong.stdout.startswith("TRAINPROBE UNKNOWN - ")) == (3, True)
    codes = [
        slot_without_a_folder("cannot", f"--inconclusive={each}", "--quiet")
        for each in ("pass", "fail")
    ]
    assert [(one.returncode, "could not be looked at" in one.stderr) for one in codes] == [
        (0, True),
        (10, True),
    ]


def test_a_file_is_written_through_nobodys_link_and_from_where_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs", encoding="utf-8")
    os.symlink(theirs, tmp_path / f"r.json.{os.getpid()}.new")
    monkeypatch.chdir(tmp_path)
    asked = read(["ready", "--slot", "prolog", "--json", "r.json"], {})
    ready_slot._write(asked.json_to, "ours")
    assert (asked.json_to, theirs.read_text(), (tmp_path / "r.json").exists()) == (
        str(tmp_path / "r.json"),
        "theirs",
        False,
    )
    os.unlink(tmp_path / f"r.json.{os.getpid()}.new")
    ready_slot._write(asked.json_to, "ours")
    assert (tmp_path / "r.json").read_text() == "ours"


HANGS_BEHIND = """
import sys, time
from trainprobe.cli import ready_slot, run
from trainprobe.ready import local_checks
def told(wanted, tell, given_up=None):
    row = {"id": "fs.mounts", "state": "fail", "says": "/data is not mounted."}
    tell(local_checks.CheckResult("checks", "storage", {"program": "storage", "checks": [row], "open": "", "dropped": []}))
local_checks.run_checks = told
ready_slot.GRACE_S = 0.2
setattr(ready_slot, sys.argv[1], lambda *_: time.sleep(60) if sys.argv[2] == "hangs" else 1 / 0)
sys.exit(run(["ready", "--slot", "prolog", "--timeout", "3"]))
"""


@pytest.mark.parametrize(
    ("where", "how"), [("_tell", "hangs"), ("_keep", "hangs"), ("_keep", "breaks")]
)
def test_what_was_found_counts_also_where_it_cannot_be_told_or_kept(where: str, how: str) -> None:
    argv = [sys.executable, "-c", HANGS_BEHIND, where, how]
    done = subprocess.run(
        argv,
        env=python_path() or {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 10, done.stderr


def test_in_the_tasks_own_prolog_stdout_holds_only_what_slurm_understands() -> None:
    argv = [sys.executable, "-m", "trainprobe", "ready", "--slot", "taskprolog", "--format", "json"]
    for local, stderr in (("0", True), ("1", False)):
        done = subprocess.run(
            argv,
            env={**python_path(), "PYTHONPATH": str(ROOT), "SLURM_LOCALID": local},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert all(line.startswith(("print ", "export ")) for line in done.stdout.splitlines())
        assert bool(done.stderr) == stderr


def test_another_form_goes_to_stdout_and_the_file_is_whole(tmp_path: Any) -> None:
    argv = [
        sys.executable,
        "-m",
        "trainprobe",
        "ready",
        "--slot",
        "healthcheck",
        "--format",
        "prometheus",
        "--json",
        str(tmp_path / "r.json"),
    ]
    done = subprocess.run(
        argv,
        env={**python_path(), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    report = json.loads((tmp_path / "r.json").read_text())
    assert f'trainprobe_verdict{{verdict="{report["verdict"]}"}} 1' in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
