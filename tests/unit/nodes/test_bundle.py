"""The tool as one file: what is in it, and that a Python without any library runs it and leaves
nothing behind.
"""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainprobe.errors import UsageError
from trainprobe.nodes.bundle import LOADER, MAIN, Bundle, bundled, carrying, write_bundle
from trainprobe.nodes.transports import here_way


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return bundled()


def run(
    folder: Path, *argv: str, said: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """Run without site packages, environment, and any folder but this one for temporary files."""
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder), **environ}
    return subprocess.run(
        [sys.executable, "-I", "-S", *argv],
        input=said,
        env=env,
        cwd="/",
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_it_holds_what_looks_checks_and_probes_and_not_what_concludes(bundle: Bundle) -> None:
    names = set(zipfile.ZipFile(io.BytesIO(bundle.content)).namelist())
    assert {
        "__main__.py",
        "trainprobe/attach/node_look.py",
        "trainprobe/_probes/host.py",
        "trainprobe/checks/catalogue.yaml",
        "yaml/__init__.py",
    } <= names
    assert not [
        name
        for name in names
        if name.startswith(("trainprobe/causes/", "trainprobe/logs/", "trainprobe/waits/"))
    ]


def test_a_python_without_libraries_runs_it_and_its_folder_goes(tmp_path: Path) -> None:
    write_bundle(str(tmp_path / "trainprobe.pyz"))
    done = run(tmp_path, str(tmp_path / "trainprobe.pyz"), "look-here", "--slurm-job", "999999999")
    first, last = (json.loads(line) for line in done.stdout.splitlines())
    assert (
        done.returncode,
        first["says"],
        last["reason"].startswith("No training process of job 999999999"),
    ) == (0, "begin", True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["trainprobe.pyz"]


def test_it_comes_through_stdin_and_what_is_behind_it_is_the_commands(
    bundle: Bundle, tmp_path: Path
) -> None:
    task = (
        json.dumps({"program": "host", "env": {}, "timeout_s": 20, "python": ""}).encode() + b"\n"
    )
    node = carrying(here_way("node7"), bundle, sys.executable).node(
        "node7", ("probe-here",), task, held=True
    )
    done = subprocess.Popen(
        [node.argv[0], "-I", "-S", *node.argv[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path)},
        cwd="/",
    )
    assert done.stdin is not None
    assert done.stdout is not None
    with done, done.stdin, done.stdout:
        done.stdin.write(node.said)
        done.stdin.flush()
        rows = [json.loads(line) for line in done.stdout]
    assert (
        rows[0]["says"],
        rows[-2]["kind"],
        rows[-2]["data"]["ended"]["how"],
        rows[-1]["says"],
    ) == ("begin", "probe.ended", "exited", "end")
    assert list(tmp_path.iterdir()) == []


def test_under_nohup_it_goes_on_after_a_hangup(tmp_path: Path) -> None:
    write_bundle(str(tmp_path / "trainprobe.pyz"))
    words = [sys.executable, "-I", "-S", str(tmp_path / "trainprobe.pyz"), "probe-here"]
    nohup = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]
    with subprocess.Popen(
        [*nohup, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path)},
        cwd="/",
    ) as tool:
        assert tool.stdin is not None
        assert tool.stdout is not None
        assert json.loads(tool.stdout.readline())["says"] == "begin"
        tool.send_signal(signal.SIGHUP)
        tool.stdin.write(
            json.dumps({"program": "host", "env": {}, "timeout_s": 20, "python": ""}).encode()
            + b"\n"
        )
        tool.stdin.flush()
        rows = [json.loads(line) for line in tool.stdout]
    assert (tool.returncode, rows[-1]["says"]) == (0, "end")


@pytest.mark.parametrize(
    "said", [b"", b"100\nhalf", b"4\nnone"], ids=["nothing", "half", "no bundle"]
)
def test_a_bundle_that_does_not_come_whole_is_not_run(said: bytes, tmp_path: Path) -> None:
    done = run(tmp_path, "-c", LOADER, "look-here", said=said)
    assert (
        done.returncode,
        done.stdout,
        b"did not come whole" in done.stderr or b"BadZipFile" in done.stderr,
    ) == (1, b"", True)


def test_nothing_but_one_folder_need_be_writable(bundle: Bundle, tmp_path: Path) -> None:
    whole = b"%d\n%s" % (len(bundle.content), bundle.content)
    done = run(tmp_path, "-c", LOADER, "--version", said=whole, TMPDIR="/proc")
    assert (done.returncode, done.stdout.startswith(b"trainprobe ")) == (0, True)


@pytest.mark.parametrize("name", ["nagios", "prometheus", "junit", "json"])
def test_the_administrators_slots_work_out_of_it(name: str, tmp_path: Path) -> None:
    write_bundle(str(tmp_path / "trainprobe.pyz"))
    words = ("ready", "--slot", "healthcheck", "--quiet", "--format", name)
    done = run(tmp_path, str(tmp_path / "trainprobe.pyz"), *words)
    assert (b"fault of trainprobe" in done.stderr, bool(done.stdout)) == (False, True), done.stderr


FULL = """
import errno, runpy, sys, zipfile
allowed, sys.argv = sys.argv[1], sys.argv[2:]
def unpack(self, folder, real=zipfile.ZipFile.extractall):
    if not (allowed and folder.startswith(allowed)):
        raise OSError(errno.ENOSPC, "No space left on device")
    real(self, folder)
zipfile.ZipFile.extractall = unpack
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_without_room_for_temporary_files_it_runs_from_the_working_folder(tmp_path: Path) -> None:
    """Where there is no room at all a monitor is told so."""
    (tmp_path / "work").mkdir()
    write_bundle(str(tmp_path / "trainprobe.pyz"))
    argv = (str(tmp_path / "trainprobe.pyz"), "ready", "--slot", "prolog", "--format", "nagios")

    def ran(allowed: str, *more: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", FULL, allowed, *argv, *more],
            cwd=tmp_path / "work",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    assert "check" in ran(str(tmp_path / "work"))[1]
    code, said = ran("")
    assert (code, said.startswith("TRAINPROBE UNKNOWN - No folder on ")) == (3, True)
    assert ran("", "--format", "text")[0] == 0
    assert ran("", "--format", "text", "--inconclusive", "fail")[0] == 10
    assert list((tmp_path / "work").iterdir()) == []


def test_an_old_python_is_told_which_one_is_needed() -> None:
    """These texts are compiled by whatever Python a node has."""
    package = (ROOT / "trainprobe" / "__init__.py").read_text(encoding="utf-8")
    for text in (MAIN, LOADER.splitlines()[0], package):
        tree = ast.parse(text, feature_version=(3, 4))
        froms = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert "__future__" not in froms
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        old = text.replace("(3, 9)", "(99,)")
        done = subprocess.run(
            [sys.executable, "-c", old], capture_output=True, text=True, check=False, timeout=30
        )
        assert "Python 3.9 or newer is needed; this is 3." in done.stderr.splitlines()[-1]


def test_a_place_that_cannot_be_written_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_bundle(str(tmp_path / "no" / "folder.pyz"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("sent", [False, True])
def test_modules_of_the_folder_in_which_it_is_started_are_not_taken(
    sent: bool, tmp_path: Path, bundle: Bundle
) -> None:
    """A project's own queue.py or zipfile.py lies where an ssh, a pod or a step begins."""
    for name in ("io", "json", "queue", "types", "zipfile", "trainprobe", "yaml", "select"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('theirs')", encoding="utf-8")
    way = carrying(here_way(), bundle, sys.executable) if sent else here_way()
    node = way.node("here", ("look-here", "--slurm-job", "999999999"))
    done = subprocess.run(
        node.argv,
        input=node.said,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"No training process of job 999999999" in done.stdout, done.stderr
