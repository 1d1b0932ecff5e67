"""The tool as one file: what is in it, and that a Python without any library runs it and leaves
nothing behind.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.nodes.bundle import LOADER, Bundle, bundled, carrying, write_bundle
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
