"""A job on a file system that stops answering (a real FUSE mount, where we are root): its folder,
its program, its output and an open file lie there, and one rank waits for it in the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.started import Started, started, until
from tests.conftest import ROOT, python_path

WITHIN_S = 60.0  # of a test on a crowded machine; `attach` itself promises 15
RANK = """
import os, time
held = open("data.bin", "rb", buffering=0)
output = os.open("train.log", os.O_WRONLY | os.O_APPEND)
os.dup2(output, 1)
os.dup2(output, 2)
print("step 1", flush=True)
said = os.path.join(os.environ["OUTSIDE"], "pid.rank" + os.environ["RANK"])
with open(said + ".tmp", "w") as file:
    file.write(str(os.getpid()))
os.rename(said + ".tmp", said)
while not os.path.exists(os.path.join(os.environ["OUTSIDE"], "go")):
    time.sleep(0.02)
def load():
    return os.pread(held.fileno(), 100, 1 << 20)
if os.environ["RANK"] == "1":
    load()
time.sleep(600)
"""


class Mount:
    def __init__(self, folder: Path, valid_s: int) -> None:
        self.point = folder / "mount"
        self.point.mkdir()
        (folder / "train.py").write_text(RANK)
        (folder / "data.bin").write_bytes(bytes(2**21))
        (folder / "train.log").touch()
        program = str(ROOT / "tests/programs/mute_mount.py")
        files = [str(folder / name) for name in ("train.py", "data.bin", "train.log")]
        self.server = subprocess.Popen(
            [sys.executable, program, str(valid_s), str(self.point), *files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.server.stdout is not None
        if self.server.stdout.readline() != "ready\n":
            self.server.communicate()
            pytest.skip("this kernel lets nobody mount a FUSE file system here")

    def fall_silent(self) -> None:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write("now\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline() == "mute\n"

    def close(self) -> None:
        self.server.terminate()  # whoever waits for an answer gets an error
        self.server.communicate(timeout=10)


@pytest.fixture
def jobs(tmp_path: Path, token: str) -> Iterator[Started]:
    with started(tmp_path, token) as found:
        yield found


@pytest.fixture(params=[3600, 0], ids=["names known", "no name known"])
def mount(request: pytest.FixtureRequest, jobs: Started) -> Iterator[Mount]:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("a mount that stops answering needs root and /dev/fuse")
    made = Mount(jobs.folder, request.param)
    yield made
    made.close()


def blocked(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/wchan").read_text() == "request_wait_answer"
    except OSError:
        return False


@pytest.mark.root
def test_attach_ends_and_names_the_mount(mount: Mount, jobs: Started) -> None:
    outside = jobs.folder
    for rank in (0, 1):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "OUTSIDE": outside}
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29541}
        with jobs.beneath(mount.point):
            jobs.start("train.py", env={**variables, **meeting, "PYTHONDONTWRITEBYTECODE": 1})
    pids = [jobs.pid_of(f"rank{rank}") for rank in (0, 1)]
    mount.fall_silent()
    (outside / "go").touch()
    if not until(lambda: blocked(pids[1])):
        pytest.skip("this kernel does not tell where a rank waits")
    words = ["attach", str(pids[0]), "--case", str(outside / "case")]
    began = time.monotonic()
    tool = subprocess.Popen(
        [sys.executable, "-m", "trainprobe", *words, "--json", str(outside / "out.json")],
        env={**os.environ, **python_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = tool.communicate(timeout=WITHIN_S)
    except subprocess.TimeoutExpired:
        mount.close()  # else it could not even be killed
        pytest.fail(f"attach has not ended after {time.monotonic() - began:.0f} s")
    report = json.loads((outside / "out.json").read_text())
    assert (tool.returncode, report["verdict"]) == (1, "hung"), said
    (cause, *_) = report["causes"]
    assert (cause["id"], report["suspects"][0]["ranks"]) == ("storage-stall", [1]), said
    assert str(mount.point) in said
    silence = f"the file system at {mount.point} gives no answer, so nothing on it was touched"
    records = map(json.loads, (outside / "case/evidence.jsonl").read_text().splitlines())
    unread = {row["kind"]: row["reason"] for row in records if silence in row.get("reason", "")}
    assert unread["output"] == f"{mount.point}/train.log cannot be read: {silence}"
    assert unread["source"] == f"{mount.point}/train.py was not read: {silence}"
    assert unread["deadlines"] == f"{mount.point}/train.py and 1 more cannot be read: {silence}"
    assert [child.poll() for child in jobs.children] == [None, None]


def stand_in(folder: str, then: Path) -> str:
    """A shell that stands in a folder and runs a program there once it is told to."""
    return f'cd "{folder}"; echo there; read line; exec "{sys.executable}" "{then}" "$@"'


EARLIER = """
import os, sys
from trainprobe.targets.earlier_runs import find, wanted_of
from trainprobe.targets.process_table import snapshot
wanted = wanted_of(["python", "train.py"], sys.argv[1], "train.py")
found = find(snapshot(), wanted, os.getpid(), os.getuid())
print(len(found.earlier) + len(found.others), "run before")
"""
TOOL = "import sys; from trainprobe.cli import main; sys.exit(main())"
UNREAD = "cannot be read: the file system at MOUNT gives no answer, so nothing on it was touched"
# What runs, where it stands, with which words; its exit code and what it says.
COMMANDS = {
    "a look from the job's own folder": (
        TOOL,
        "MOUNT",
        ("attach", "PID"),
        3,
        "could not look  source:",
    ),
    "its log": (TOOL, "OUTSIDE", ("explain", "MOUNT/train.log"), 2, f"MOUNT/train.log {UNREAD}."),
    "its program once more": (
        *(TOOL, "OUTSIDE", ("diagnose", "--", sys.executable, "MOUNT/train.py"), 2),
        f"The script MOUNT/train.py {UNREAD}.",
    ),
    "an earlier run": (EARLIER, "OUTSIDE", ("MOUNT",), 0, "1 run before"),
}


@pytest.mark.root
@pytest.mark.parametrize("what", COMMANDS)
def test_no_command_waits_for_the_mount(what: str, jobs: Started) -> None:
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("a mount that stops answering needs root and /dev/fuse")
    program, standing, words, code, says = COMMANDS[what]
    runs = jobs.write("runs.py", program)
    with contextlib.closing(Mount(jobs.folder, 0)) as mount:
        outside = jobs.folder
        with jobs.beneath(mount.point):
            jobs.start("train.py", env={"RANK": 0, "WORLD_SIZE": 1, "OUTSIDE": outside})
        named = {"MOUNT": mount.point, "OUTSIDE": outside, "PID": jobs.pid_of("rank0")}

        def whole(text: str) -> str:
            for name, value in named.items():
                text = text.replace(name, str(value))
            return text

        tool = subprocess.Popen(
            ["sh", "-c", stand_in(whole(standing), runs), "sh", *map(whole, words)],
            env={**os.environ, **python_path(), "TMPDIR": str(outside)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert tool.stdout is not None
        assert tool.stdout.readline() == "there\n"
        mount.fall_silent()
        try:
            said, _ = tool.communicate("go\n", timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            mount.close()  # else it could not even be killed
            said, _ = tool.communicate()
            pytest.fail(f"it did not end: {said}")
    assert (tool.returncode, whole(says) in said) == (code, True), said
