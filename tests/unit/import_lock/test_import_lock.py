from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe import ImportLock, import_lock
from trainprobe.import_lock import lock_file

BEGIN = (
    "import os, sys, time, trainprobe\nlock = trainprobe.import_lock(sys.argv[1], timeout_s=20)\n"
)
HOLD = BEGIN + "with lock:\n    print('in', flush=True)\n    time.sleep(60)\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "import.lock")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []
    yield children
    for child in children:
        child.kill()
        child.communicate(timeout=20)


def start(source: str, *argv: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(source), *argv]
    return subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
    )


def holding(
    path: str, started: list[subprocess.Popen[str]], source: str = HOLD, **env: str
) -> subprocess.Popen[str]:
    """A process that holds the lock by now."""
    child = start(source, path, **env)
    started.append(child)
    assert child.stdout is not None
    assert child.stdout.readline() == "in\n"
    return child


def is_free(path: str) -> bool:
    file = lock_file.opened(path)
    try:
        return lock_file.lock(file, path, wait=False)
    finally:
        lock_file.close(file)


def test_processes_go_in_one_after_the_other(path: str, tmp_path: Path) -> None:
    inside = """
    with lock:
        others = os.listdir(sys.argv[2])
        mine = os.path.join(sys.argv[2], str(os.getpid()))
        open(mine, "w").close()
        time.sleep(0.3)
        os.unlink(mine)
        sys.exit(f"together with {others}" if others else 0)
    """
    (tmp_path / "inside").mkdir()
    children = [
        start(BEGIN + textwrap.dedent(inside), path, str(tmp_path / "inside"), RANK=str(rank))
        for rank in range(3)
    ]
    said = [child.communicate(timeout=60)[1] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], said
    for rank, (child, text) in enumerate(zip(children, said, strict=True)):
        me = f"rank {rank} pid {child.pid}"
        assert re.search(
            rf"^LOCK: {me} got import lock {re.escape(path)} after [\d.]+ s$", text, re.MULTILINE
        ), text
        assert re.search(
            rf"^MEM: {me} rss \d+ MiB \([+-]\d+ MiB\) peak \d+ MiB limit \d+ MiB after failed"
            r" import \(SystemExit\)$",
            text,
            re.MULTILINE,
        ), text
        assert re.search(
            rf"^LOCK: {me} released import lock {re.escape(path)} after [\d.]+ s$",
            text,
            re.MULTILINE,
        ), text
    waited = re.findall(
        r"^LOCK: rank \d pid \d+ waits for import lock \S+ \(held by rank (\d) pid (\d+) for [\d.]+"
        r" s\)$",
        "".join(said),
        re.MULTILINE,
    )
    assert waited
    assert all(children[int(rank)].pid == int(pid) for rank, pid in waited)


def test_a_deadline_names_the_holder(
    path: str, started: list[subprocess.Popen[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    child = holding(path, started, RANK="5")
    began = time.monotonic()
    names = (
        rf"held by rank 5 pid {child.pid} for [\d.]+ s \(-c\), on"
        rf" {re.escape(os.uname().nodename)}\. .*attach {child.pid}"
    )
    with pytest.raises(TimeoutError, match=names), import_lock(path, timeout_s=0.3):
        raise AssertionError
    assert 0.3 <= time.monotonic() - began < 5
    assert "gave up on import lock" in capsys.readouterr().err
    with (
        pytest.warns(RuntimeWarning, match="Going on without the import lock"),
        import_lock(path, timeout_s=0.1, on_timeout="go-on", quiet=True),
    ):
        assert not is_free(path)
    assert not is_free(path)
    assert capsys.readouterr().err == ""


def test_a_waiter_is_one_of_the_kernels_waiters(
    path: str, started: list[subprocess.Popen[str]]
) -> None:
    child = holding(path, started)
    waiter = start(BEGIN + "with lock: pass", path)
    started.append(waiter)
    until = time.monotonic() + 20
    while time.monotonic() < until and not re.search(
        rf"-> FLOCK .* {waiter.pid} ", Path("/proc/locks").read_text()
    ):
        time.sleep(0.05)
    locks = Path("/proc/locks").read_text()
    assert re.search(rf"-> FLOCK .* {waiter.pid} .*:{Path(path).stat().st_ino} ", locks), locks
    assert lock_file.read(path).startswith(f"pid {child.pid}\nhost ")
    child.send_signal(signal.SIGKILL)  # the kernel releases it
    assert waiter.wait(20) == 0
    assert lock_file.read(path) == ""


def test_it_is_entered_again_by_every_thread_of_its_process(path: str) -> None:
    entered = threading.Event()

    def also() -> None:
        with import_lock(path, timeout_s=5, quiet=True):
            entered.set()

    lock = import_lock(path, quiet=True)
    with lock, lock:
        with import_lock(path, timeout_s=0, quiet=True):
            thread = threading.Thread(target=also)
            thread.start()
            thread.join(10)
            assert entered.is_set()
        assert not is_free(path)
    assert is_free(path)
    assert "trainprobe-import-lock" not in {thread.name for thread in threading.enumerate()}


def test_threads_that_wait_get_in_together(path: str, started: list[subprocess.Popen[str]]) -> None:
    child = holding(path, started)
    inside = threading.Barrier(3, timeout=20)

    def enter() -> None:
        with import_lock(path, timeout_s=20, quiet=True):
            inside.wait()

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    child.kill()
    inside.wait()
    for thread in threads:
        thread.join(20)
    until = time.monotonic() + 10
    while (
        not is_free(path) and time.monotonic() < until
    ):  # whoever did not need to ask any more gives it back when the kernel hands it over
        time.sleep(0.01)
    assert is_free(path)


def test_a_forked_child_neither_holds_nor_releases_it(
    path: str, started: list[subprocess.Popen[str]]
) -> None:
    source = (
        BEGIN
        + """
with lock:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        if os.fork():
            time.sleep(60)
        print("in", flush=True)
        os.close(1), os.close(2)
        time.sleep(10)  # outlives its parent
        os._exit(0)
"""
    )
    parent = holding(path, started, source)  # the first child has left the `with` by now
    assert not is_free(path)
    parent.kill()
    parent.wait(10)
    assert is_free(path)


def test_who_is_below_the_holder_does_not_wait_for_it(path: str) -> None:
    child = [sys.executable, "-c", BEGIN + "with lock: print('in')", path]
    with import_lock(path, quiet=True):
        done = subprocess.run(child, text=True, capture_output=True, timeout=20, check=True)
        assert done.stdout == "in\n", done.stderr
        assert re.search(
            rf"goes on without import lock {re.escape(path)} after 0.\d s \(held by pid"
            rf" {os.getpid()} .*, its ancestor\)",
            done.stderr,
        )
        assert not is_free(path)


def test_slots_let_so_many_in(path: str, started: list[subprocess.Popen[str]]) -> None:
    two = HOLD.replace("timeout_s=20", "slots=2")
    holding(path, started, two)
    second = holding(path, started, two)
    with pytest.raises(TimeoutError), import_lock(path, slots=2, timeout_s=0.3, quiet=True):
        raise AssertionError
    second.kill()
    with import_lock(path, slots=2, timeout_s=10, quiet=True):
        assert not is_free(path)
        assert not is_free(f"{path}.1")


def test_it_decorates_a_function(path: str) -> None:
    @import_lock(path, quiet=True)
    def load(a: int, *, b: int) -> int:
        """Load."""
        assert not is_free(path)
        return a + b

    assert (load(1, b=2), load.__name__, load.__doc__) == (3, "load", "Load.")
    assert is_free(path)


def test_what_is_not_ours_is_refused_in_a_sentence(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(path).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(OSError, match=r"cannot be opened: it is a symbolic link\. Choose"),
        import_lock(path),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(IsADirectoryError, match=r"cannot be opened: "), import_lock(str(tmp_path)):
        pass
    other = tmp_path / "other.lock"
    other.touch()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with (
        pytest.raises(PermissionError, match=r"is not used: it belongs to another user\."),
        import_lock(str(other)),
    ):
        pass


def test_a_file_that_was_deleted_keeps_nobody_out(
    path: str, started: list[subprocess.Popen[str]]
) -> None:
    child = holding(path, started)
    waiter = start(BEGIN + "with lock:\n    print('in', flush=True)\n    time.sleep(60)", path)
    started.append(waiter)
    time.sleep(0.5)
    Path(path).unlink()
    child.kill()
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == "in\n"
    assert not is_free(path)  # it holds the file that has the name now


def test_the_usual_place_is_local_and_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / f"trainprobe-{os.geteuid()}"
    assert lock_file.default_path() == str(folder / "import.lock")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    monkeypatch.setattr("tempfile.gettempdir", lambda: "")
    assert not lock_file.default_path().startswith(str(tmp_path))
    monkeypatch.setattr(lock_file, "on_network", lambda _place: True)
    with pytest.raises(
        OSError,
        match=(
            r"No local folder for the import lock: .* is on a network file system\. Choose a file"
            r" with path="
        ),
    ):
        lock_file.default_path()


def test_a_mount_of_a_network_is_known_by_the_list_of_mounts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mounts = (
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n40 22 0:50 / /home rw shared:1 - nfs4 server:/home"
        " rw\n41 22 0:51 / /s rw - fuse.sshfs a:b rw\n"
    )
    monkeypatch.setattr(lock_file, "read", lambda _path: mounts)
    assert [lock_file.on_network(place) for place in ("/tmp", "/home/ann/tmp", "/homes", "/s")] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("wrong", [{"slots": 0}, {"timeout_s": -1.0}, {"on_timeout": "ignore"}])
def test_values_that_mean_nothing(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least|is raise or go-on"):
        ImportLock(**wrong)  # type: ignore[arg-type]


def test_it_needs_nothing_but_the_standard_library() -> None:
    root = Path(sys.modules["trainprobe"].__file__ or "").parent.parent
    source = (
        f"import sys; sys.path.insert(0, {str(root)!r}); import trainprobe;"
        " print(trainprobe.import_lock, *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source],
        text=True,
        capture_output=True,
        timeout=20,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()[1:]} & {
        "yaml",
        "typer",
        "rich",
        "psutil",
        "typing",
        "json",
        "tempfile",
        "subprocess",
    }
    assert done.stdout.startswith("<function import_lock")
    assert loaded == set()


def test_quiet_says_nothing(path: str) -> None:
    command = [sys.executable, "-c", BEGIN + "with lock: pass", path]
    done = subprocess.run(
        command,
        text=True,
        capture_output=True,
        timeout=20,
        check=True,
        env={**os.environ, "TRAINPROBE_QUIET": "1"},
    )
    assert done.stderr == ""
