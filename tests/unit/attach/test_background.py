"""Looks in the background: what they bring, what they fail with, what comes too late."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from trainprobe.attach.background import BackgroundLooks
from trainprobe.case import Case
from trainprobe.saved_case import read_case


def test_each_look_writes_its_own_records_and_none_holds_up_another(tmp_path: Path) -> None:
    case = Case.create(str(tmp_path / "case"), "attach", ())
    never = threading.Event()

    def fails() -> None:
        raise ValueError("an odd file")

    looks = BackgroundLooks(case, "job", {})
    began = time.monotonic()
    looks.start("locks", lambda: case.add("locks", cell="job", data={"held": []}))
    looks.start("mounts", lambda: never.wait(30) and case.add("mounts", cell="job"))
    looks.start("ports", fails)
    looks.finish(0.2)
    assert time.monotonic() - began < 2.0
    by_kind = {record.kind: record for record in case.evidence}
    assert by_kind["locks"].outcome == "ok"
    assert by_kind["mounts"].outcome == "timed_out"
    assert "did not come back" in by_kind["mounts"].reason
    assert by_kind["ports"].outcome == "crashed"
    assert "ValueError: an odd file" in by_kind["ports"].reason

    sealed = case.seal()
    never.set()
    time.sleep(0.1)
    assert case.evidence == sealed, "what comes home after the judgement is not kept"
    assert read_case(case.folder).evidence == sealed
