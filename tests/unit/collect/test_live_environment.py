"""Numbers that a process has set since it started, read from its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from trainprobe.collect.live_environment import live_environment, own_number
from trainprobe.targets.environment import environ_of

LATER = "import os; os.environ.update({changes!r}); print('set', flush=True); input()"
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    children: list[subprocess.Popen[bytes]] = []

    def run(changes: dict[str, str], **env: str) -> int:
        plain = {
            name: value
            for name, value in os.environ.items()
            if "RANK" not in name and name != "WORLD_SIZE"
        }
        argv = [sys.executable, "-c", LATER.format(changes=changes)]
        child = subprocess.Popen(
            argv, env={**plain, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"set\n"
        return child.pid

    yield run
    for child in children:
        child.kill()
        child.communicate()


def test_a_number_that_was_set_after_the_start_is_read_and_nothing_else(start: Start) -> None:
    pid = start({"RANK": "2", "WORLD_SIZE": "4", "HF_TOKEN": "hf_secret"})

    assert "RANK" not in environ_of(pid)
    assert live_environment(pid) == {"RANK": "2", "WORLD_SIZE": "4"}
    number = own_number(pid)
    assert number is not None
    assert (number.rank, number.world_size) == (2, 4)


def test_a_number_from_the_start_is_not_its_own(start: Start) -> None:
    assert own_number(start({}, RANK="0", WORLD_SIZE="2")) is None
    assert own_number(start({})) is None


def test_what_cannot_be_read_says_nothing() -> None:
    assert live_environment(2**22 + 5) == {}
