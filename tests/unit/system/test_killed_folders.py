"""Killed before any of its calls to the file system, a look leaves no folder that the next one
cannot clear away.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainprobe.system.working_folders import MARK, UNMARKED_S, sweep

TOUCH = ("os.mkdir", "open", "os.rename", "os.remove", "os.rmdir")
LOOKS = {
    "beside a process": """
with Exchange(int(sys.argv[1])) as exchange:
    exchange.put("payload.py", b"pass")
    exchange.left = True
    exchange.left = False
    exchange.put("said", b"{}")
""",
    "of the tool": """
with working_folder() as folder:
    os.mkdir(folder + "/cell")
    open(folder + "/cell/out", "x").close()
    open(folder + "/words", "x").close()
""",
    "a dump that lies in no file": """
read_dump_content(b"no dump", time.monotonic() + 5)
""",
}
# One child for each call: the n-th is killed before its n-th call, the last one goes to its end.
PROGRAM = """
import os, signal, sys, time
from trainprobe.collect.dump_files import read_dump_content
from trainprobe.collect.exchange import Exchange
from trainprobe.system.run import run
from trainprobe.system.working_folders import working_folder
import shutil, subprocess, tempfile
def look():
{look}
def killed_before(number):
    left = [number]
    def hook(event, arguments):
        if event in {touch} and (str(arguments[0]).startswith(".trainprobe") or
            any(sys.argv[2] in str(each) or "trainprobe-" in str(each) or each in ("said", "payload.py")
                for each in arguments)):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
tempfile.gettempdir()
for number in range(200):
    pid = os.fork()
    if not pid:
        killed_before(number)
        look()
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        break
print(number)
"""


@pytest.mark.parametrize("kind", LOOKS)
def test_a_look_killed_before_any_call_leaves_nothing_for_good(kind: str, tmp_path: Path) -> None:
    look = LOOKS[kind].strip().replace("\n", "\n    ")
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    job = subprocess.Popen(["sleep", "600"], env=env)
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-c", PROGRAM.format(look=f"    {look}", touch=TOUCH)),
                *(str(job.pid), str(tmp_path)),
            ],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        job.kill()
        job.wait()
    assert done.returncode == 0, done.stderr
    if kind.startswith("a dump"):
        assert list(tmp_path.iterdir()) == []
        return
    assert int(done.stdout) >= 6, "it was killed at too few places"
    sweep(str(tmp_path))
    young = list(tmp_path.iterdir())
    assert young, "it was never killed before it had marked its folder"
    for folder in young:
        os.utime(folder, (0, time.time() - UNMARKED_S - 1))
    sweep(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_mark_stays_where_it_may_be_somebody_elses(tmp_path: Path) -> None:
    full, marked, young, linked = (tmp_path / f"trainprobe-{place}bcdefgh" for place in "1234")
    for folder in (full, marked, young):
        folder.mkdir()
    (full / "model.pt").touch()
    (marked / MARK).write_text("?\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked.symlink_to(elsewhere)
    for folder in (full, marked, elsewhere):
        os.utime(folder, (0, 0))
    assert sweep(str(tmp_path)) == []
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in (full, marked, young, linked, elsewhere)
    }
