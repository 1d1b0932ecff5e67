"""What leaves the supervisor: notifications, metrics, the journal, words on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest

from trainprobe.errors import UsageError
from trainprobe.redact import Redactor
from trainprobe.supervise import journal
from trainprobe.supervise.journal import RunFolder
from trainprobe.supervise.metrics_file import Samples, metrics_text, write_metrics
from trainprobe.supervise.notification import (
    Notifier,
    check_target,
    notification,
    summary_of,
)
from trainprobe.supervise.voice import Voice

REPORT = {
    "verdict": "hung",
    "says": "Rank 3 on n7 holds up the others.",
    "suspects": [{"ranks": [3]}],
    "causes": [
        {"id": "rank-stuck", "title": "t", "confidence": 0.9, "summary": "It waits.", "named": True}
    ],
}


def told() -> dict[str, object]:
    return notification("hung", REPORT, host="n7", argv=("train", "a b"), folder="/c", at=1.0)


def test_a_notification_says_who_and_why() -> None:
    data = told()
    assert data["ranks"] == [3]
    assert data["command"] == "train 'a b'"
    assert summary_of(data) == (
        "hung on n7: Rank 3 on n7 holds up the others.\n"
        "rank-stuck: It waits.\ncommand: train 'a b'\nevidence: /c\n"
    )
    assert notification("hung", {}, host="n", argv=(), folder="")["cause"] is None


def test_a_command_gets_the_summary_and_a_failure_is_said(tmp_path: Path) -> None:
    failed: list[str] = []
    script = tmp_path / "tell.py"
    script.write_text(
        f"import os, sys\nopen({str(tmp_path / 'told')!r}, 'w')"
        ".write(os.environ['TRAINPROBE_EVENT'] + sys.stdin.read())\n"
    )
    bad = f"{sys.executable} -c 'raise SystemExit(3)'"
    nobody = "http://127.0.0.1:9/x"
    notifier = Notifier(
        (f"{sys.executable} {script}", bad, nobody, "no-such-program"), failed.append
    )
    notifier.send("hung", told(), "the summary")
    notifier.close()
    assert (tmp_path / "told").read_text() == "hungthe summary"
    assert len(failed) == 3


@pytest.mark.parametrize("target", ["", "  ", "a 'b"])
def test_what_is_neither_command_nor_url_is_refused(target: str) -> None:
    with pytest.raises(UsageError):
        check_target(target)


def test_metrics_have_names_that_promtool_takes(tmp_path: Path) -> None:
    path = tmp_path / "run.prom"
    values: dict[str, Samples] = {
        "run_up": [({}, 1)],
        "run_step": [({"rank": "0"}, 12), ({"rank": '"\\\n'}, 13.5)],
        "run_alarms_total": [({}, 2)],
        "run_step_seconds": [],
    }
    write_metrics(str(path), values)
    text = path.read_text()
    assert text == metrics_text(values)
    assert "trainprobe_run_up 1\n" in text
    assert 'trainprobe_run_step{rank="\\"\\\\\\n"} 13.5\n' in text
    assert "step_seconds" not in text
    for line in text.splitlines():
        assert re.match(r"# (HELP|TYPE) trainprobe_\w+ |trainprobe_\w+(\{.*\})? \S+$", line)
    assert os.listdir(tmp_path) == ["run.prom"]
    write_metrics(str(tmp_path / "gone" / "run.prom"), values)


def test_the_journal_is_bounded_and_hides_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 2000)
    secret = "hf_" + "a1B2" * 9
    folder = RunFolder.make(str(tmp_path / "case"), ("train", f"--token={secret}"), {})
    for number in range(200):
        folder.note("looked", number=number)
    assert sorted(os.listdir(folder.path)) == ["flight", "run.jsonl", "run.jsonl.1"]
    both = Path(folder.path, "run.jsonl").read_text()
    assert len(both) < 2200
    assert json.loads(both.splitlines()[-1])["number"] == 199
    again = RunFolder.make(str(tmp_path / "other"), ("train", f"--token={secret}"), {})
    assert secret not in Path(again.path, "run.jsonl").read_text()


def test_cases_of_looks_that_found_nothing_go(tmp_path: Path) -> None:
    folder = RunFolder.make(str(tmp_path / "case"), (), {})
    for number in range(30):
        path = folder.next_look()
        os.mkdir(path)
        folder.look_made(path, keep=number == 3)
    kept = [name for name in os.listdir(folder.path) if name.startswith("look-")]
    assert len(kept) <= journal.LOOKS_KEPT + 1
    assert "look-4" in kept


def test_a_folder_with_nothing_in_it_goes_unless_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unasked, asked = RunFolder.make(None, (), {}), RunFolder.make("case", (), {})
    dumped = RunFolder.make("dumped", (), {})
    dumped.worth_keeping = False
    Path(dumped.path, "flight", "nccl_trace_rank_0").write_text("x")
    for folder in (unasked, asked, dumped):
        folder.close()
    assert sorted(os.listdir(tmp_path)) == ["case", "dumped"]


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        RunFolder.make(str(tmp_path / "file" / "case"), (), {})


def test_words_come_in_order_without_secrets_and_a_stuck_reader_stops_nobody() -> None:
    reads, writes = os.pipe()
    secret = "hf_" + "a1B2" * 9
    voice = Voice(Redactor({"HF_TOKEN": secret}), writes)
    voice.say(f"one \x1b[31m {secret}")
    voice.show("two")
    voice.close()
    said = os.read(reads, 4096).decode()
    assert said.startswith("trainprobe: one ")
    assert said.endswith("two\n")
    assert secret not in said
    assert "\x1b" not in said
    stuck = Voice(Redactor({}), writes)
    began = time.monotonic()
    for _ in range(300):
        stuck.show("x" * 1000)
    assert time.monotonic() - began < 5.0
    os.close(reads)
    stuck.close()
    os.close(writes)
