"""What the world may put before `trainprobe explain`: interrupts, full disks, cut streams, names
and values that are traps.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard

from tests.conftest import ROOT
from trainprobe.case import Case
from trainprobe.cli import run
from trainprobe.logs.environment_reports import read_environment_report
from trainprobe.logs.extracts import hide_over_lines
from trainprobe.logs.finding import find_inputs
from trainprobe.logs.gathering import first_interrupt_stops, gather
from trainprobe.logs.read_ahead import ReadAhead
from trainprobe.model.progress import Silence
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain
from trainprobe.redact import Redactor
from trainprobe.secret_lines import KEY

CRASH = (
    '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/w/train.py", line 12, in'
    " <module>\n[rank1]:     x = d[\"a\"]\n[rank1]: KeyError: 'a'\n"
)
KEY_LINE = "MIIEpAIBAAKCAQEAsecretkeymaterialxyz1234567890ABCDEFGHIJKLMNOPQR"


def dies_of_nothing(*argv: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trainprobe", "explain", *argv],
        cwd=ROOT,
        check=False,
        timeout=60,
        **streams,
    )


def evidence(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evidence.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "Mem: 1.1.1Gi x",
        "tmpfs . . . 5% /dev/shm",
        "tmpfs 1.2.3G 1 1 5% /dev/shm",
        "system ram: ..GB",
        "shared memory (/dev/shm) size: 1.2.3",
        "cpu(s): ²",
        "WORLD_SIZE=²",
    ],
)
def test_what_only_looks_like_a_number_is_none(line: str) -> None:
    assert not set(read_environment_report(line)) & {
        "memory.total_bytes",
        "shm.size_bytes",
        "shm.free_bytes",
    }


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_zstd_stream_that_is_cut_off_is_not_whole(tmp_path: Path, share: float) -> None:
    lines = "".join(
        f"step {number}/9000 loss {1 / (number + 1):.5f} {number * 7919 % 8191}\n"
        for number in range(9000)
    )
    packed = zstandard.compress(lines.encode())
    (tmp_path / "a.zst").write_bytes(packed[: int(len(packed) * share)])
    (tmp_path / "b.zst").write_bytes(packed + zstandard.compress(b"end\n"))
    texts, reasons = [], []
    for name in ("a.zst", "b.zst"):
        feed = ReadAhead(str(tmp_path / name))
        texts.append(b"".join(feed.read(time.monotonic() + 20)).decode())
        assert feed.opened is not None
        reasons.append(feed.opened.reason)
    assert lines.startswith(texts[0])
    assert len(texts[0]) < len(lines)
    assert "cut off" in reasons[0]
    assert texts[1] == lines + "end\n"
    assert not reasons[1]


def waiting_bytes(pipe: IO[bytes]) -> int:
    """How many bytes of a pipe nobody has read yet."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def test_ctrl_c_ends_the_reading_and_not_the_report(tmp_path: Path) -> None:
    """The first file of an endless pipe was begun when the interrupt came: what it said until
    then is judged.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "trainprobe", "explain", "-", "--case", str(tmp_path / "case")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(CRASH.encode())
        process.stdin.flush()
        for _ in range(600):
            if (tmp_path / "case" / "case.json").exists() and not waiting_bytes(process.stdin):
                break
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read().decode()
        assert process.wait(30) == 130
    assert "Rank 1 raised KeyError" in said
    assert "interrupted" in " ".join(said.split())
    assert {row["kind"] for row in evidence(tmp_path / "case")} >= {
        "interrupted",
        "log.extract",
        "log.trouble",
    }


def test_a_second_ctrl_c_is_an_interrupt() -> None:
    with first_interrupt_stops() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_thread_leaves_the_signals_alone() -> None:
    seen: list[bool] = []

    def work() -> None:
        with first_interrupt_stops() as asked:
            seen.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(5)
    assert seen == [False]


def test_files_for_which_no_time_was_left_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for number in range(40):
        (tmp_path / "logs" / f"rank{number}.log").write_text("step 1/10 loss 2.0\n")
    asked = ExplainRequest(paths=(str(tmp_path / "logs"),), timeout_s=1e-9, argv=())
    with Case.create(str(tmp_path / "case"), "explain", ()) as case:
        gather(case, asked, find_inputs(asked.paths), Silence())
        trouble = [
            says for row in case.evidence if row.kind == "log.trouble" for says in row.data["says"]
        ]
        unread = [
            row
            for row in case.evidence
            if row.kind == "log.file" and "nothing of it was read" in row.reason
        ]
    assert any("no time was left" in says for says in trouble)
    assert len(unread) >= 39  # one may be done before the time is looked at


def test_what_was_left_out_is_said_again_when_the_case_is_judged_again(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(CRASH)
    (tmp_path / "logs" / "junk.bin").write_bytes(bytes(range(32)) * 50)
    first = explain(
        ExplainRequest(paths=(str(tmp_path / "logs"),), case=str(tmp_path / "case"), argv=())
    )
    again = explain(str(tmp_path / "case"))
    assert any("junk.bin" in says for says in first.unexplained)
    assert again == first


def test_a_private_key_line_by_line_is_hidden(tmp_path: Path) -> None:
    text = (
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE[:40]}\nshort==\n-----END RSA"
        f" PRIVATE KEY-----\nstep 3\n{CRASH}"
    )
    (tmp_path / "a.log").write_text(text)
    explain(ExplainRequest(paths=(str(tmp_path / "a.log"),), case=str(tmp_path / "case"), argv=()))
    kept = (tmp_path / "case" / "evidence.jsonl").read_text()
    assert KEY_LINE[:40] not in kept
    assert "step 3" in kept
    assert "KeyError" in kept


def test_only_lines_of_keys_are_hidden() -> None:
    words = [
        "ab" * 32,
        KEY_LINE.lower(),
        "/data/shards/train-00001-of-00100.tar.gz/data/shards/train-000012",
        "step 3",
        KEY_LINE,
        "-----END CERTIFICATE-----",
    ]
    rows: list[list[Any]] = [[number, None, None, "", word] for number, word in enumerate(words)]
    hide_over_lines(rows, Redactor({}))
    assert [row[4] for row in rows] == [word if word != KEY_LINE else KEY for word in words]


def test_an_empty_log_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n \r\n")
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8b\x08\x00")
    assert explain(str(tmp_path / "a.log")).says == "The log is empty."
    assert explain(str(tmp_path / "b.gz")).says == "Nothing could be read of the log."


def test_errors_show_no_control_characters_and_no_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123"
    assert run(["explain", f"{tmp_path}/\x1b]0;x\x07\x1b[2J\n\u202e/{token}/a.log"]) == 2
    told = capsys.readouterr().err
    assert not set("\x1b\x07\u202e") & set(told)
    assert told.count("\n") == 1
    assert token not in told
    assert "hidden:hf-token" in told


def test_a_report_that_cannot_be_printed_keeps_its_exit_code(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    (tmp_path / "a.log").write_text(CRASH)
    with open("/dev/full", "wb") as full:
        ended = dies_of_nothing(
            str(tmp_path / "a.log"), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE
        )
    assert ended.returncode == 1
    assert b"could not be written: No space left" in ended.stderr
    assert b"fault" not in ended.stderr
