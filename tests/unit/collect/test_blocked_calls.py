"""What the system call of a sleeping process waits for."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from trainprobe.collect.members import Member
from trainprobe.collect.processes import read_process
from trainprobe.stacks.blocked_calls import BlockedCall, blocked_call

Start = Callable[..., "subprocess.Popen[bytes]"]
Until = Callable[[Callable[[], Any]], Any]

WAITS = {
    "read": "import os; os.read(0, 1)",
    "poll": "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()",
    "select": "import select; select.select([0], [], [])",
    "epoll_wait": "import select; e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()",
}


@pytest.mark.parametrize("name", WAITS)
def test_the_descriptors_of_a_call_are_read(name: str, until: Until) -> None:
    child = subprocess.Popen([sys.executable, "-c", WAITS[name]], stdin=subprocess.PIPE)
    try:

        def found() -> dict[str, Any] | None:
            data = read_process(Member(0, child.pid), 1).data
            call = data["threads"][0].get("call") or {}
            return call if call.get("reads") == [0] else None

        call = until(found)
        # the C library may take a newer call under an older name
        assert call["name"] in (name, f"p{name}", f"{name}6", "pselect6", "epoll_pwait")
        assert call["writes"] == []
    finally:
        child.kill()
        child.communicate()


def test_a_full_pipe_is_waited_for_by_its_writer(until: Until) -> None:
    reader, writer = os.pipe()
    script = "import os\nwhile True: os.write(1, b'x' * 4096)"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=writer)
    try:

        def writes() -> bool:
            data = read_process(Member(0, child.pid), 1).data
            return (data["threads"][0].get("call") or {}).get("writes") == [1]

        assert until(writes)
        assert select.select([reader], [], [], 0)[0], "the look took nothing out of the pipe"
    finally:
        child.kill()
        child.wait()
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(
    ("line", "machine", "call"),
    [
        (
            "61 0x126b 0x7ffc 0x0 0x0 0x0 0x0 0x7ff 0x7ff",
            "x86_64",
            BlockedCall("wait4", child=4715),
        ),
        ("61 0xffffffff 0x7ffc 0x0 0x0 0x0 0x0 0x7ff 0x7ff", "x86_64", BlockedCall("wait4")),
        ("247 0x1 0x126b 0x0 0x4 0x0 0x0 0x7ff 0x7ff", "x86_64", BlockedCall("waitid", child=4715)),
        ("63 0x3 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f", "aarch64", BlockedCall("read", (3,))),
        ("1 0x2 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f", "x86_64", BlockedCall("write", (), (2,))),
        ("running", "x86_64", BlockedCall()),
        ("-1 0x7ffc 0x7f", "x86_64", BlockedCall()),
        ("", "x86_64", BlockedCall()),
        ("0 0x3", "riscv64", BlockedCall()),
        ("0 zz", "x86_64", BlockedCall()),
    ],
)
def test_the_line_of_proc_says_what_a_call_waits_for(
    line: str, machine: str, call: BlockedCall
) -> None:
    assert blocked_call(line, machine) == call
