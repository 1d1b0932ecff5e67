"""Python stacks of real processes, and of py-spy's own misbehaviour."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect import cgroup, permission, procfs, pyspy, stacks
from trainprobe.collect.members import Member
from trainprobe.collect.stacks import look_at_stacks, read_stacks

Start = Callable[..., "subprocess.Popen[bytes]"]
Until = Callable[[Callable[[], Any]], Any]

IN_LOCK = """
import threading
lock = threading.Lock()
lock.acquire()
def wait_for_lock():
    lock.acquire()
print("ready", flush=True)
wait_for_lock()
"""
IN_SLEEP = """
import threading, time
def worker():
    time.sleep(600)
threading.Thread(target=worker, name="helper", daemon=True).start()
def rest():
    time.sleep(600)
print("ready", flush=True)
rest()
"""
ONE_THREAD = [
    {
        "thread_id": 1,
        "os_thread_id": 7,
        "thread_name": "MainThread",
        "active": True,
        "owns_gil": True,
        "frames": [],
    }
]


def test_a_process_in_a_lock_shows_the_line_that_wants_it(start: Start, until: Until) -> None:
    child = start(IN_LOCK)

    def leaf() -> Any:
        seen = read_stacks(Member(0, child.pid), 1, 5)
        frames = seen.data["threads"][0]["frames"]
        return seen if frames and frames[0]["name"] == "wait_for_lock" else None

    seen = until(leaf)
    assert seen.outcome == "ok"
    assert seen.data["look"] == 1
    main = seen.data["threads"][0]
    assert main["os_thread_id"] == child.pid
    assert [(frame["name"], frame["line"]) for frame in main["frames"]] == [
        ("wait_for_lock", 6),
        ("<module>", 8),
    ]
    assert os.path.isabs(main["frames"][0]["file"])


def test_all_threads_are_seen_with_the_main_thread_first(
    case: Case, start: Start, until: Until
) -> None:
    child = start(IN_SLEEP)
    member = Member(3, child.pid, "rank", 42)
    until(
        lambda: (
            read_stacks(Member(3, child.pid), 1, 5).data["threads"][0]["frames"][0]["name"]
            == "rest"
        )
    )
    evidence = look_at_stacks(case, "user_script@4", [Member(3, child.pid), member], 2)
    good, reused = evidence
    assert good.outcome == "ok"
    assert (good.kind, good.cell, good.subject.rank, good.subject.kind) == (
        "stacks.python",
        "user_script@4",
        3,
        "rank",
    )
    assert [thread["name"] for thread in good.data["threads"]] == ["MainThread", "helper"]
    # The second member names another start: the pid is not the process that is meant.
    assert reused.outcome == "unavailable"
    assert "belongs to another process" in reused.reason
    assert reused.data["threads"] == []


def test_a_stopped_process_is_looked_at_without_a_pause(start: Start) -> None:
    child = start(IN_SLEEP)
    os.kill(child.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    seen = read_stacks(Member(0, child.pid), 1, 5)
    assert seen.outcome == "ok"
    assert seen.data["nonblocking"] is True
    now = procfs.stat(child.pid)
    assert now is not None
    assert now.state == "T", "the look must not wake what somebody has stopped"


def test_a_zombie_is_told_from_a_process_that_is_gone(start: Start) -> None:
    child = start("print('ready', flush=True)")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = read_stacks(Member(0, child.pid), 1, 5)
    assert zombie.outcome == "unavailable"
    assert "zombie" in zombie.reason
    child.wait()
    gone = read_stacks(Member(0, child.pid), 1, 5)
    assert gone.outcome == "unavailable"
    assert gone.reason == f"process {child.pid} is gone"


def test_a_program_that_is_not_python_is_no_fault_of_py_spy(start: Start) -> None:
    child = start(argv=["sleep", "600"])
    seen = read_stacks(Member(None, child.pid, "child"), 1, 5)
    assert seen.outcome == "unavailable"
    assert "no Python program" in seen.reason


def test_another_users_process_is_denied_with_the_way_out(
    start: Start, as_nobody: Callable[..., Any]
) -> None:
    child = start(IN_SLEEP)
    seen = as_nobody(lambda: read_stacks(Member(0, child.pid), 1, 5))
    assert seen.outcome == "denied"
    assert "belongs to root" in seen.reason
    assert "as root" in seen.reason


def test_a_waiter_on_filelock_tells_which_file(start: Start, until: Until) -> None:
    pytest.importorskip("filelock")
    child = start("""
import fcntl, sys, filelock
path = sys.argv[0] + "." + "l" * 150
holder = open(path, "w")
fcntl.flock(holder, fcntl.LOCK_EX)
print("ready", flush=True)
filelock.FileLock(path).acquire()
""")

    def paths() -> list[str]:
        threads = read_stacks(Member(0, child.pid), 1, 5).data["threads"]
        return [
            frame["locals"]["lock_filename"]
            for thread in threads
            for frame in thread["frames"]
            if "lock_filename" in frame.get("locals", {})
        ]

    assert until(paths)[0].endswith("program.py." + "l" * 150)


def test_no_py_spy_is_said_so(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setenv("TRAINPROBE_PY_SPY", "/nowhere/py-spy")
    (evidence,) = look_at_stacks(case, "c@1", [Member(0, os.getpid())], 1)
    assert evidence.outcome == "unavailable"
    assert "/nowhere/py-spy" in evidence.reason


@pytest.mark.parametrize(
    ("answer", "outcome", "says"),
    [
        ("echo '<html>no</html>'", "crashed", "no list of threads"),
        ("echo '{\"a\": 1}'", "crashed", "no list of threads"),
        ("printf '[[[[['", "crashed", "no list of threads"),
        ("echo '[]'", "partial", "no Python thread"),
        ('echo \'[1, null, {"frames": 3}, {"frames": [7, {}]}]\'', "partial", "3 of 4 entries"),
        ("head -c 17000000 /dev/zero", "crashed", "larger than"),
        ("kill -SEGV $$", "crashed", "py-spy failed"),
        ("echo 'Error: Operation not permitted (os error 1)' >&2; exit 1", "denied", ""),
        ("echo 'Error: something new' >&2; exit 3", "crashed", "something new"),
        (
            "echo \"error: Found argument '--json' which wasn't expected\" >&2; exit 1",
            "unavailable",
            "does not know the option --json",
        ),
        (
            "echo \"error: unexpected argument '--json' found\" >&2; exit 2",
            "unavailable",
            "pip install 'py-spy>=0.4'",
        ),
    ],
)
def test_what_py_spy_gets_wrong_is_evidence(
    answer: str, outcome: str, says: str, start: Start, fake_py_spy: Callable[[str], None]
) -> None:
    child = start(IN_SLEEP)
    fake_py_spy(answer)
    seen = read_stacks(Member(0, child.pid), 1, 5)
    assert seen.outcome == outcome
    assert says in seen.reason
    assert seen.reason


def test_a_py_spy_that_hangs_costs_the_deadline_and_no_more(
    case: Case, start: Start, fake_py_spy: Callable[[str], None]
) -> None:
    child = start(IN_SLEEP)
    fake_py_spy("trap '' TERM; sleep 600 & sleep 600")
    began = time.monotonic()
    found = look_at_stacks(
        case, "c@4", [Member(rank, child.pid) for rank in range(4)], 1, deadline_s=1.0
    )
    assert time.monotonic() - began < 4
    assert {evidence.outcome for evidence in found} == {"timed_out"}


def test_an_older_py_spy_that_cannot_leave_files_alone_is_used_all_the_same(
    start: Start, fake_py_spy: Callable[[str], None]
) -> None:
    child = start(IN_SLEEP)
    complaint = "error: unexpected argument '--full-filenames' found"
    fake_py_spy(
        f'case "$*" in *--full-filenames*) echo "{complaint}" >&2; exit 2;;'
        f" *) echo '{json.dumps(ONE_THREAD)}';; esac"
    )
    assert read_stacks(Member(0, child.pid), 1, 5).outcome == "ok"


def test_a_failed_look_is_tried_again_without_a_pause(
    start: Start, fake_py_spy: Callable[[str], None]
) -> None:
    child = start(IN_SLEEP)
    fake_py_spy(
        f"case \"$*\" in *--nonblocking*) echo '{json.dumps(ONE_THREAD)}';; *) echo 'Error: Failed"
        " to get stack traces' >&2; exit 1;; esac"
    )
    seen = read_stacks(Member(0, child.pid), 1, 5)
    assert seen.outcome == "ok"
    assert seen.data["nonblocking"] is True
    assert seen.data["threads"][0]["owns_gil"] is True


def test_caps_keep_the_leaf_the_root_and_the_main_thread() -> None:
    frames = [{"name": f"f{depth}", "filename": "/a.py", "line": depth} for depth in range(1000)]
    rows = [
        {"os_thread_id": tid, "thread_name": str(tid), "frames": frames if tid == 200 else []}
        for tid in range(1, 201)
    ]
    dump = pyspy.parse(json.dumps(rows).encode(), 200)
    assert dump is not None
    assert len(dump.threads) == pyspy.THREADS_CAP
    assert dump.cut_threads == 200 - pyspy.THREADS_CAP
    assert dump.cut_frames == 1000 - pyspy.FRAMES_CAP
    main = dump.threads[0]
    assert main["os_thread_id"] == 200
    assert main["frames"][0]["name"] == "f0"
    assert main["frames"][-1]["name"] == "f999"


def test_secrets_in_locals_are_not_kept() -> None:
    rows = [
        {
            "os_thread_id": 1,
            "frames": [
                {
                    "name": "acquire",
                    "filename": "/x/filelock/_api.py",
                    "line": 1,
                    "locals": [
                        {"name": "lock_filename", "repr": '"/a"'},
                        {"name": "key", "repr": "s"},
                    ],
                },
                {
                    "name": "main",
                    "filename": "/x/train.py",
                    "line": 1,
                    "locals": [{"name": "lock_filename", "repr": '"secret"'}],
                },
                {
                    "name": "_jit_compile",
                    "filename": "/t/torch/utils/cpp_extension.py",
                    "line": 1,
                    "locals": [{"name": "build_directory", "repr": '"/b/"'}],
                },
            ],
        }
    ]
    dump = pyspy.parse(json.dumps(rows).encode(), 1)
    assert dump is not None
    assert [frame.get("locals") for frame in dump.threads[0]["frames"]] == [
        {"lock_filename": "/a"},
        None,
        {"lock_file_path": "/b/lock"},
    ]


def test_a_native_look_needs_memory_to_spare(
    start: Start, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(IN_SLEEP)
    monkeypatch.setattr(cgroup, "headroom_bytes", lambda _pid: 300 * 2**20)
    refused = stacks.look_at_native_stacks(case, "c@1", Member(0, child.pid), 1)
    assert refused.outcome == "unavailable"
    assert "300 MiB is left" in refused.reason
    monkeypatch.setattr(cgroup, "headroom_bytes", lambda _pid: 2**31)
    seen = stacks.look_at_native_stacks(case, "c@1", Member(0, child.pid), 1, deadline_s=30)
    assert seen.outcome == "ok"
    assert any("module" in frame for frame in seen.data["threads"][0]["frames"])
    assert {"rest", "<module>"} <= {frame["name"] for frame in seen.data["threads"][0]["frames"]}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("0", 1000, 1000, 0, 1), "ptrace_scope is 1"),
        (("0", 1000, 1000, 0, 2), "only an administrator"),
        (("1ffffffffff", 0, 0, 0, 3), "until the next boot"),
        (("0", 1000, 0, 0, 0), "belongs to root"),
        (("a80425fb", 0, 0, 0, 0), "--cap-add=SYS_PTRACE"),
        (("0", 1000, 1000, 77, 1), "already traced by process 77"),
        (("nonsense", None, None, None, None), "SYS_PTRACE"),
        (("1ffffffffff", 0, 0, 0, None), "security module"),
    ],
)
def test_a_refusal_names_its_remedy(
    values: tuple[str, int | None, int | None, int | None, int | None], says: str
) -> None:
    effective, ours, theirs, tracer, scope = values
    assert says in permission.explain(5, effective, ours, theirs, tracer, scope)
