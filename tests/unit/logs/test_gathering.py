"""Files, folders, globs and stdin in any mix become one case; nothing hostile gets through."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from trainprobe.cli import run
from trainprobe.errors import UsageError
from trainprobe.logs.finding import find_inputs
from trainprobe.model.request import ExplainRequest
from trainprobe.pipelines import explain

TRACE = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 3, in <module>',
    "    main()",
    "ValueError: no such split",
]


def evidence(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evidence.jsonl").read_text().splitlines()]


def extracts(folder: Path) -> list[dict[str, Any]]:
    return [row for row in evidence(folder) if row["kind"] == "log.extract"]


def kept(tmp_path: Path, *paths: str, **asked: Any) -> Path:
    folder = tmp_path / "case"
    explain(
        ExplainRequest(
            paths=paths or (str(tmp_path / "logs"),),
            case=str(folder),
            argv=("trainprobe", "explain"),
            **asked,
        )
    )
    return folder


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_globs_folders_and_names_are_found_each_file_once(tmp_path: Path) -> None:
    write(tmp_path, {"a/0.log": "x", "a/b/1.log": "y", "2.log": "z", ".hidden": "no"})
    (tmp_path / "link.log").symlink_to("2.log")
    (tmp_path / "a" / "loop").symlink_to("..")
    found = find_inputs([str(tmp_path / "*.log"), str(tmp_path), str(tmp_path / "2.log")])
    assert [os.path.relpath(path, tmp_path) for path in found.files] == [
        "2.log",
        "a/0.log",
        "a/b/1.log",
    ]
    with pytest.raises(UsageError, match="There is no file or folder"):
        find_inputs([str(tmp_path / "*.nothing")])


def test_a_name_with_magic_signs_is_itself(tmp_path: Path) -> None:
    write(tmp_path, {"log[1].txt": "x", "log1.txt": "y"})
    assert [
        os.path.basename(path) for path in find_inputs([str(tmp_path / "log[1].txt")]).files
    ] == ["log[1].txt"]


def test_ranks_come_from_prefixes_and_paths(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        {
            "job/attempt_0/0/stderr.log": "hello\n",
            "job/attempt_0/1/stderr.log": "\n".join(TRACE),
            "all.out": "[rank0]: a b c\n[rank1]: d e f\nnobody's line\n",
        },
    )
    rows = {
        os.path.basename(os.path.dirname(row["data"]["path"])): row["data"]
        for row in extracts(kept(tmp_path))
    }
    assert (rows["0"]["rank"], rows["1"]["rank"], rows["1"]["rank_source"]) == (0, 1, "path")
    assert rows["logs"]["rank"] is None
    assert [(row[2], row[4]) for row in rows["logs"]["rows"]] == [
        (0, "a b c"),
        (1, "d e f"),
        (None, "nobody's line"),
    ]


def test_local_numbers_of_several_hosts_count_on(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        {
            f"node{host}.out": "\n".join(f"[default{local}]:line of {local}" for local in range(4))
            for host in range(2)
        },
    )
    found = [
        (row["data"]["path"][-9:-4], row["data"]["rows"][3][2]) for row in extracts(kept(tmp_path))
    ]
    assert found == [("node0", 3), ("node1", 7)]


def test_a_pid_tells_whose_lines_of_nccl_they_are(tmp_path: Path) -> None:
    log = (
        "n1:70:70 [0] NCCL INFO comm 0x1 rank 8 nranks 16 cudaDev 0 busId 0 - Init"
        " COMPLETE\nn1:70:91 [0] NCCL WARN something\nn2:71:91 [0] NCCL WARN other\n"
    )
    write(tmp_path / "logs", {"x.log": log})
    assert [row[2] for row in extracts(kept(tmp_path))[0]["data"]["rows"]][:2] == [8, 8]


def test_attempts_have_cells_of_their_own(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        {
            f"run/attempt_{attempt}/{rank}/stderr.log": f"attempt {attempt}\n"
            for attempt in range(3)
            for rank in range(2)
        },
    )
    cells = {
        row["data"]["path"].split("attempt_")[1][0]: row["cell"] for row in extracts(kept(tmp_path))
    }
    assert cells == {"0": "attempt-0", "1": "attempt-1", "2": "job"}


def test_every_kind_of_file_finds_its_place(tmp_path: Path) -> None:
    error = {
        "message": {
            "message": "ValueError: no",
            "extraInfo": {"py_callstack": "\n".join(TRACE), "timestamp": "1795288918"},
        }
    }
    write(
        tmp_path / "logs",
        {
            "train.log.gz": gzip.compress(b"step 1 loss 0.5\n"),
            "run/attempt_0/1/error.json": json.dumps(error),
            "dmesg.txt": (
                "[  100.000001] Linux version 6\n[  101.000001] Out of memory: Killed process 811"
                " (python) total-vm:1kB, anon-rss:2kB\n"
            ),
            "junk.bin": bytes(range(256)) * 30,
            "empty.log": "",
        },
    )
    rows = evidence(kept(tmp_path))
    files = {
        os.path.basename(row["data"]["path"]): (row["data"]["what"], row["outcome"])
        for row in rows
        if row["kind"] == "log.file"
    }
    assert files == {
        "train.log.gz": ("log", "ok"),
        "error.json": ("error-file", "ok"),
        "dmesg.txt": ("kernel-log", "ok"),
        "junk.bin": ("unknown", "unavailable"),
        "empty.log": ("empty", "ok"),
    }
    assert [row["subject"]["rank"] for row in rows if row["kind"] == "error_file"] == [1]
    assert [len(row["data"]["lines"]) for row in rows if row["kind"] == "kernel_log"] == [1]


def test_junk_is_named_and_never_fatal(tmp_path: Path) -> None:
    write(tmp_path / "logs", {"junk.bin": bytes(range(256)) * 30, "train.log": "\n".join(TRACE)})
    report = explain(str(tmp_path / "logs"))
    assert report.verdict == "crashed"
    assert any("junk.bin" in says and "no text" in says for says in report.unexplained)
    (tmp_path / "logs" / "train.log").unlink()
    with pytest.raises(UsageError, match=r"junk\.bin"):
        explain(str(tmp_path / "logs"))


def test_no_input_ends_the_explanation_of_the_others(tmp_path: Path) -> None:
    write(tmp_path, {"train.log": "\n".join(TRACE), "env.txt": "hello\n", "broken/case.json": "{"})
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "case.json")
    paths = [str(tmp_path / name) for name in ("train.log", "missing.log", "broken", "fifo")]
    env = (
        str(tmp_path / "env.txt"),
        str(tmp_path / "none.txt"),
        str(tmp_path / "fifo" / "case.json"),
    )
    report = explain(ExplainRequest(paths=tuple(paths), env_files=env))
    assert report.verdict == "crashed"
    failed = [entry.would_settle for entry in report.undecided if entry.id == "cannot-look"]
    for words in (
        "missing.log",
        "broken",
        "fifo/case.json is a FIFO",
        "env.txt says nothing",
        "none.txt cannot be read",
    ):
        assert [says for says in failed if words in says], words
    with pytest.raises(UsageError, match=r"missing\.log"):
        explain(paths[1:2])
    with pytest.raises(UsageError, match="cannot be read"):
        explain(paths[2:3])


def test_a_case_is_judged_with_what_is_known_of_its_environment(tmp_path: Path) -> None:
    write(tmp_path, {"train.log": "\n".join(TRACE), "env.txt": "hello\n"})
    explain(ExplainRequest(paths=(str(tmp_path / "train.log"),), case=str(tmp_path / "case")))
    asked = ExplainRequest(paths=(str(tmp_path / "case"),), env_files=(str(tmp_path / "env.txt"),))
    assert any("env.txt says nothing" in entry.would_settle for entry in explain(asked).undecided)


def test_since_leaves_out_what_came_before(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        {
            "a.log": "".join(
                f"2026-11-21 10:{minute:02d}:00 step {minute}\n" for minute in range(60)
            )
        },
    )
    for since, first in (("10m", "10:49"), ("2026-11-21T10:30", "10:30"), ("0.5h", "10:29")):
        folder = kept(tmp_path, since=since, ranks=(3,), max_events=7)
        rows = extracts(folder)[0]["data"]["rows"]
        assert first in rows[0][4]
        request = next(row["data"] for row in evidence(folder) if row["kind"] == "log.request")
        assert (request["since"], request["ranks"], request["max_events"]) == (rows[0][1], [3], 7)
    with pytest.raises(UsageError, match="--since"):
        kept(tmp_path, since="yesterday")


def test_a_case_among_logs_brings_its_evidence(tmp_path: Path) -> None:
    write(tmp_path / "logs", {"a.log": "\n".join(TRACE)})
    first = kept(tmp_path)
    first.rename(tmp_path / "earlier")
    write(tmp_path, {"more/b.log": "step 1\n"})
    again = kept(tmp_path, str(tmp_path / "earlier"), str(tmp_path / "more"))
    assert len(extracts(again)) == 2


SECRETS = (
    "hf_" + "aB3dE6gH9jK2mN5pQ8sT",
    "ghp_" + "aB3dE6gH9jK2mN5pQ8sTu1W4y7",
    "s3cr3t-pa55word",
    "sk-" + "aB3dE6gH9jK2mN5pQ8sTu1W4",
    "0123456789abcdef0123456789abcdef01234567",
)


def test_no_secret_of_a_log_reaches_the_disk_or_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = [
        f"HF_TOKEN={SECRETS[0]}",
        f"git clone https://x:{SECRETS[1]}@github.com/a/b",
        f"connecting to postgres://user:{SECRETS[2]}@db:5432/runs",
        f"'OPENAI_API_KEY': '{SECRETS[3]}', 'PATH': '/usr/bin'",
        f"export WANDB_API_KEY={SECRETS[4]}",
        *TRACE[:-1],
        f"ValueError: cannot log in with token {SECRETS[0]} at https://x:{SECRETS[1]}@github.com",
    ]
    write(tmp_path / "logs", {"a.log": "\n".join(log), "b.log": "\n".join(log * 900)})
    assert (
        run(
            [
                "explain",
                str(tmp_path / "logs"),
                "--case",
                str(tmp_path / "case"),
                "--json",
                str(tmp_path / "report.json"),
            ]
        )
        == 1
    )
    written = [
        path.read_bytes()
        for path in [*(tmp_path / "case").rglob("*"), tmp_path / "report.json"]
        if path.is_file()
    ]
    said = capsys.readouterr()
    for secret in SECRETS:
        assert not any(secret.encode() in content for content in written), secret
        assert secret not in said.out + said.err


def test_no_control_character_reaches_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202eevil\x9b5m\x00"
    write(
        tmp_path / "logs",
        {
            "a\x1b[2J\n.log": "\n".join([*TRACE[:-1], f"ValueError: {nasty} no such split"]),
            "\x1b]0;x\x07.bin": bytes(range(256)) * 20,
        },
    )
    assert run(["explain", str(tmp_path / "logs"), "--case", str(tmp_path / "case")]) == 1
    said = capsys.readouterr()
    shown = said.out + said.err + (tmp_path / "case" / "report.txt").read_text()
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown) == []
    assert "no such split" in shown


def test_a_folder_of_traps_is_read_around(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs, {"train.log": "\n".join(TRACE), "locked.log": "x\n"})
    os.mkfifo(logs / "pipe.log")
    for name, to in (
        ("zero", "/dev/zero"),
        ("loop", "loop"),
        ("up", ".."),
        ("tty", "/dev/tty"),
        ("mem", "/proc/self/mem"),
    ):
        (logs / name).symlink_to(to)
    with open(logs / "sparse.log", "wb") as file:
        file.truncate(100 * 2**30)
    (logs / "locked.log").chmod(0)
    rows = evidence(kept(tmp_path))
    outcomes = {
        os.path.basename(row["data"]["path"]): row["outcome"]
        for row in rows
        if row["kind"] == "log.file"
    }
    assert outcomes["train.log"] == "ok"
    assert {outcomes[name] for name in ("pipe.log", "zero", "loop")} == {"unavailable"}
    assert outcomes["locked.log"] == ("ok" if os.geteuid() == 0 else "denied")


def test_many_files_need_no_more_descriptors_than_one(tmp_path: Path) -> None:
    write(
        tmp_path / "logs",
        {
            f"rank_{rank}.log": "\n".join(f"step {step} loss 0.5" for step in range(30))
            for rank in range(200)
        },
    )
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "from trainprobe.pipelines import explain\nprint(len(explain(sys.argv[1]).world.ranks))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "logs")],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Too many open files" not in done.stdout + done.stderr


def test_stdin_is_a_log_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainprobe", "explain", "-"],
        input="\n".join(TRACE),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "no such split" in done.stdout
