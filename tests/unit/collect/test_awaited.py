"""The values for which a suspect waits, by the locals of its frame."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainprobe.attach.rounds import waiting_texts
from trainprobe.case import Case
from trainprobe.collect.collectors.awaited import (
    AwaitedPath,
    AwaitedValue,
    WaitingLine,
    look_at_values,
    parse_awaited,
    values_of,
)
from trainprobe.collect.members import Member

Until = Callable[[Callable[[], Any]], Any]

WAITER = """
import os, time
def wait(done, password, tries):
    while not os.path.exists(done) and tries != password:
        time.sleep(0.1)
print("ready", flush=True)
wait("/tmp/there-is-no-such-file", "hunter2hunter2", 3)
"""
LOOP = "while not os.path.exists(done) and tries != password:"


def test_the_file_of_a_poll_is_named_and_no_secret_is(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WAITER)
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        case = Case.create(str(tmp_path / "case"), "attach", ())
        line = WaitingLine(Member(1, child.pid), str(script), 5, (LOOP, "time.sleep(0.1)"))

        (record,) = look_at_values(case, "job", line, deadline_s=5.0)
    finally:
        child.kill()
        child.communicate()

    facts = parse_awaited(record)
    values = {fact.name: fact.value for fact in facts if isinstance(fact, AwaitedValue)}
    assert values == {"done": "'/tmp/there-is-no-such-file'", "tries": "3"}
    (path,) = (fact for fact in facts if isinstance(fact, AwaitedPath))
    assert (path.path, path.exists) == ("/tmp/there-is-no-such-file", False)
    assert "hunter2" not in Path(case.folder, "evidence.jsonl").read_text()


def test_only_plain_values_of_the_waiting_frame_are_kept() -> None:
    def local(name: str, shown: str) -> dict[str, object]:
        return {"name": name, "repr": shown}

    frames = [
        {"filename": "/lib/time.py", "locals": [local("step", "1")]},
        {
            "filename": "/job/train.py",
            "locals": [local("step", "12"), local("model", "<Model at 0x7f>"), local("other", "3")],
        },
        {"filename": "/job/train.py", "locals": [local("step", "7")]},
    ]
    dump = json.dumps([{"os_thread_id": 9, "frames": frames}]).encode()

    assert values_of(dump, 9, "/job/train.py", ["step", "model"]) == {"step": 12}
    frames[1]["name"], frames[2]["name"] = "inner", "outer"
    dump = json.dumps([{"os_thread_id": 9, "frames": frames}]).encode()
    assert values_of(dump, 9, "/job/train.py", ["step"], "outer") == {"step": 7}
    assert values_of(b"[", 9, "/job/train.py", ["step"]) == {}


def test_the_texts_of_a_wait_are_its_line_and_the_ways_out_of_its_loop() -> None:
    inside = [{"kind": "while", "line": 3, "text": "while True:"}]
    skips = [
        {"text": "if os.path.isfile(done):", "how": "break", "loop": 3},
        {"text": "if bad:", "how": "continue", "loop": 3},
    ]

    texts = waiting_texts({"text": "time.sleep(1)", "blocks": inside, "skips": skips})

    assert texts == ("while True:", "time.sleep(1)", "if os.path.isfile(done):")
    assert waiting_texts({"text": "value = store.get(key)"}) == ("value = store.get(key)",)
    assert waiting_texts({"text": "loss.backward()"}) == ()
