"""What children are started with, and what is said of those that cannot be started."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainprobe.errors import Fault
from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper

PROGRAMS = Path(__file__).parents[2] / "programs"
ENV = {"PATH": os.environ["PATH"], "NAME": "välue = with\nnewline"}


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(str(tmp_path)) as made:
        yield made


def spec(folder: Path, *argv: str, key: str = "a") -> ChildSpec:
    return ChildSpec(
        key, argv, ENV, str(folder), str(folder / f"{key}.out"), str(folder / f"{key}.err")
    )


def end_of(keeper: Keeper) -> None:
    until = time.monotonic() + 30
    while keeper.running():
        assert time.monotonic() < until
        keeper.wait(1)


def test_a_child_gets_its_arguments_environment_and_folder_and_nothing_else(
    tmp_path: Path, keeper: Keeper
) -> None:
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)  # noqa: FBT003 - it takes no names
    began = time.time()
    keeper.start(
        [
            spec(
                tmp_path,
                sys.executable,
                str(PROGRAMS / "shows_its_surroundings.py"),
                "an argument",
                "",
                "ü\n",
            )
        ]
    )
    os.close(leaked)
    child = keeper.children["a"]
    end_of(keeper)
    seen = json.loads((tmp_path / "a.out").read_text())
    assert seen["argv"] == ["an argument", "", "ü\n"]
    assert {name: seen["env"][name] for name in ENV} == ENV
    assert not {"PYTHONPATH", "HOME"} & seen["env"].keys()
    assert seen["cwd"] == os.path.realpath(tmp_path)
    assert seen["stdin"] == "/dev/null"
    assert seen["fds"] == [0, 1, 2]
    assert not set(seen["ignored"]) & {
        1,
        2,
        3,
        15,
        20,
    }, "the keeper ignores these, its children must not"
    assert seen["session_leader"]
    assert seen["soft_limit"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert child.started_at is not None
    assert began - 1 <= child.started_at <= time.time() + 1
    assert child.started_ticks


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"argv": ("/nowhere/program",)}, "/nowhere/program cannot be run: No such file"),
        (
            {"argv": ("no-such-program-on-path",)},
            "no-such-program-on-path cannot be run: No such file",
        ),
        ({"argv": ("/",)}, "/ cannot be run: Permission denied"),
        ({"argv": ()}, "no program"),
        ({"argv": ("true", "a\0b")}, "zero byte"),
        (
            {"cwd": "/nowhere/at/all"},
            "working directory /nowhere/at/all cannot be entered: No such file",
        ),
        ({"stdout": "/nowhere/out"}, "output file /nowhere/out cannot be opened: No such file"),
        ({"stderr": "/"}, "output file / cannot be opened: Is a directory"),
    ],
)
def test_what_cannot_be_started_says_why_and_the_others_go_on(
    tmp_path: Path, keeper: Keeper, change: dict[str, object], says: str
) -> None:
    bad = dataclasses.replace(spec(tmp_path, "true"), **change)  # type: ignore[arg-type]
    keeper.start([bad, spec(tmp_path, "sh", "-c", "exit 4", key="good")])
    end_of(keeper)
    ended, good = keeper.children["a"].ended, keeper.children["good"].ended
    assert ended is not None
    assert ended.how == "not_started"
    assert says in ended.reason
    assert (ended.code, ended.signal, keeper.children["a"].pid) == (None, None, None)
    assert good is not None
    assert good.code == 4
    assert keeper.trouble == ""


def test_a_file_without_a_known_format_is_named(tmp_path: Path, keeper: Keeper) -> None:
    program = tmp_path / "nonsense"
    program.write_bytes(b"\x00\x01\x02")
    program.chmod(0o755)
    keeper.start([spec(tmp_path, str(program))])
    ended = keeper.children["a"].ended
    assert ended is not None
    assert "Exec format error" in ended.reason
    program.chmod(0o644)
    keeper.start([spec(tmp_path, str(program), key="b")])
    ended = keeper.children["b"].ended
    assert ended is not None
    assert f"{program} cannot be run: Permission denied" in ended.reason


def test_two_streams_in_one_file_share_their_cap(tmp_path: Path, keeper: Keeper) -> None:
    both = str(tmp_path / "both")
    noisy = (
        "import os\nfor i in range(3000):\n  os.write(1, b'o' * 1023 + b'\\n')\n  os.write(2, b'e'"
        " * 1023 + b'\\n')"
    )
    keeper.start(
        [
            dataclasses.replace(
                spec(tmp_path, sys.executable, "-c", noisy),
                stdout=both,
                stderr=both,
                output_cap_bytes=100_000,
            )
        ]
    )
    end_of(keeper)
    text = Path(both).read_bytes()
    assert keeper.children["a"].cut_bytes > 0
    assert len(text) <= 100_000
    assert b"o" in text
    assert b"e" in text


def test_earlier_output_is_appended_to(tmp_path: Path, keeper: Keeper) -> None:
    (tmp_path / "a.out").write_text("before\n")
    keeper.start([spec(tmp_path, "echo", "after")])
    end_of(keeper)
    assert (tmp_path / "a.out").read_text() == "before\nafter\n"


def test_command_lines_with_secrets_stay_off_the_disk(tmp_path: Path, keeper: Keeper) -> None:
    keeper.start([spec(tmp_path, "sh", "-c", "sleep 0.2; true s3cret-word")])
    end_of(keeper)
    keeper.close()
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and b"s3cret-word" in path.read_bytes()
    ]


def test_a_name_is_used_once(tmp_path: Path, keeper: Keeper) -> None:
    keeper.start([spec(tmp_path, "true")])
    with pytest.raises(Fault, match="'a'"):
        keeper.start([spec(tmp_path, "true")])


def test_stop_and_close_with_nothing_below(keeper: Keeper) -> None:
    keeper.stop()
    keeper.stop()
    keeper.close()
    keeper.close()
    keeper.poll()
    assert keeper.trouble == ""
    assert not keeper.running()
    assert keeper.alive_pids() == []


def test_starting_again_after_a_stop(tmp_path: Path, keeper: Keeper) -> None:
    keeper.start([spec(tmp_path, "sleep", "60")])
    keeper.stop(grace_s=10)
    keeper.start([spec(tmp_path, "sh", "-c", "exit 3", key="b")])
    end_of(keeper)
    ended = keeper.children["b"].ended
    assert ended is not None
    assert (ended.code, ended.by_us) == (3, False)


def test_large_environments_pass_through(tmp_path: Path, keeper: Keeper) -> None:
    env = {**ENV, **{f"BIG_{number}": "v" * 100_000 for number in range(5)}}
    keeper.start(
        [
            dataclasses.replace(
                spec(tmp_path, "sh", "-c", "echo ${#BIG_4}", key=str(place)), env=env
            )
            for place in range(4)
        ]
    )
    end_of(keeper)
    assert [(tmp_path / f"{place}.out").read_text() for place in range(4)] == ["100000\n"] * 4


TOOL = """
import os, signal, sys, time
from trainprobe.system.child import ChildSpec
from trainprobe.system.keeper import Keeper
from trainprobe.system.working_folders import make_working_folder
folder = make_working_folder(sys.argv[1])
os.mkdir(folder + "/cell")
with Keeper(folder + "/cell") as keeper:
    print("ready", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_the_working_folder_goes_with_a_tool_that_was_killed(how: str, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", TOOL, str(tmp_path), how, "0.5"], check=False, stdout=subprocess.PIPE
    )
    until = time.monotonic() + 30
    while how == "killed" and list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(list(tmp_path.iterdir())) == (0 if how == "killed" else 1)
