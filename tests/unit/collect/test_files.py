"""Looks at files that others wrote: output, error files, dumps, source text."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainprobe.case import Case
from trainprobe.collect.collectors import output, source
from trainprobe.collect.collectors.error_file import look_at_error_file
from trainprobe.collect.collectors.output import (
    Stream,
    look_at_common_output,
    look_at_output,
    split_by_rank,
)
from trainprobe.collect.collectors.source import Site, look_at_source, read_source, sites_in_text
from trainprobe.collect.flight_recorder import look_at_flight_recorder
from trainprobe.collect.members import Member
from trainprobe.model.evidence import Evidence

RANK = Member(1, 4242)


def written(case: Case) -> list[Any]:
    return [
        json.loads(line) for line in Path(case.folder, "evidence.jsonl").read_text().splitlines()
    ]


# ------------------------------------------------------------------------------------------- output


def test_a_short_output_is_kept_whole(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "rank1.out"
    path.write_bytes(b"step 1\nstep 2 \xff\n")
    evidence = look_at_output(
        case,
        "user_script@2",
        RANK,
        Stream(str(path), "stdout", first_at=10.0, last_at=12.5, cut_bytes=7),
    )
    assert evidence.outcome == "ok"
    assert evidence.data["head"] == "step 1\nstep 2 \ufffd\n"
    assert evidence.data["tail"] == ""
    assert (
        evidence.data["bytes"],
        evidence.data["cut_bytes"],
        evidence.data["left_out_bytes"],
    ) == (16, 7, 0)
    assert (evidence.data["first_at"], evidence.data["last_at"]) == (10.0, 12.5)
    assert Path(case.folder, evidence.files[0]).read_text() == "step 1\nstep 2 \ufffd\n"
    assert written(case)[0]["data"]["head"] == evidence.data["head"]


def test_a_flood_keeps_both_ends(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "rank1.out"
    with path.open("wb") as file:
        file.write(b"first line\n")
        file.seek(200 * 2**20)
        file.write(b"\nlast line\n")
    began = time.monotonic()
    evidence = look_at_output(case, "c@2", RANK, Stream(str(path)))
    assert time.monotonic() - began < 3
    assert evidence.data["head"].startswith("first line\n")
    assert evidence.data["tail"].endswith("\nlast line\n")
    assert len(evidence.data["head"]) + len(evidence.data["tail"]) <= 2 * output.TEXT_CAP_BYTES
    assert evidence.data["left_out_bytes"] == evidence.data["bytes"] - 2 * output.TEXT_CAP_BYTES
    copy = Path(case.folder, evidence.files[0])
    assert copy.stat().st_size < 3 * output.COPY_CAP_BYTES
    assert "bytes left out" in copy.read_text()


def test_no_output_and_empty_output_differ(case: Case, tmp_path: Path) -> None:
    missing = look_at_output(case, "c@2", RANK, Stream(str(tmp_path / "none")))
    assert missing.outcome == "unavailable"
    assert "no output file none" in missing.reason
    (tmp_path / "empty").write_text("")
    empty = look_at_output(case, "c@2", RANK, Stream(str(tmp_path / "empty")))
    assert (empty.outcome, empty.data["bytes"], empty.files) == ("ok", 0, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[default0]:a\n[default1]:b\n[default0]:c\nlauncher\n",
            {0: "a\nc\n", 1: "b\n", None: "launcher\n"},
        ),
        ("[rank1]: Traceback\n[rank1]:   File\n", {1: "Traceback\n  File\n"}),
        ("[default1]:[rank1]: KeyError\n", {1: "KeyError\n"}),
        ("[0]:x\n[1,1]<stdout>:y\n[1,0]<stderr>: z\n", {0: "x\nz\n", 1: "y\n"}),
        (
            "[2024]: news\n[INFO]: x\n[rank7]: not ours\n",
            {None: "[2024]: news\n[INFO]: x\n[rank7]: not ours\n"},
        ),
        ("", {}),
        ("[default1]:no end", {1: "no end"}),
    ],
)
def test_a_common_stream_is_taken_apart(text: str, expected: dict[int | None, str]) -> None:
    assert split_by_rank(text, {0, 1}) == expected


def test_each_rank_keeps_its_last_words_when_another_floods(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "launcher.out"
    flood = "".join(f"[default0]:step {number}\n" for number in range(20_000))
    path.write_text(f"starting\n[default1]:KeyError: 'x'\n{flood}exitcode : 1\n")
    launcher, *ranks = look_at_common_output(
        case,
        "c@2",
        Member(None, 9, "launcher"),
        Stream(str(path)),
        [Member(0, 10), Member(1, 11), Member(2, 12)],
    )
    assert launcher.data["head"] == "starting\nexitcode : 1\n"
    assert [record.subject.rank for record in ranks] == [0, 1]
    assert ranks[1].data["head"] == "KeyError: 'x'\n"
    assert ranks[0].data["tail"].endswith("step 19999\n")
    missing = look_at_common_output(
        case, "c@2", Member(None, 9, "launcher"), Stream(str(tmp_path / "none")), [Member(0, 10)]
    )
    assert [record.outcome for record in missing] == ["unavailable"]


# ---------------------------------------------------------------------------- error files and dumps


def test_an_error_file_is_its_json(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text(
        json.dumps(
            {"message": {"message": "KeyError: 'x'", "extraInfo": {"timestamp": "1700000000"}}}
        )
    )
    evidence = look_at_error_file(case, "c@2", RANK, str(path))
    assert evidence.outcome == "ok"
    assert evidence.data["message"]["message"] == "KeyError: 'x'"
    assert evidence.data["present"] is True
    absent = look_at_error_file(case, "c@2", RANK, str(tmp_path / "none"))
    assert (absent.outcome, absent.data["present"]) == ("ok", False)


@pytest.mark.parametrize(
    "content", [b"", b'{"message": {"mess', b"[1]", b"\xff\x00", b"[" * 100_000, b'"text"']
)
def test_a_broken_error_file_is_partly_read(content: bytes, case: Case, tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_bytes(content)
    evidence = look_at_error_file(case, "c@2", RANK, str(path))
    assert evidence.outcome == "partial"
    assert "error file" in evidence.reason
    assert len(evidence.data["text"]) <= 4000


def test_dumps_are_copied_byte_for_byte(case: Case, tmp_path: Path) -> None:
    for name, content in {
        "rank_1": b"\x80\x04K\x01.\r\n\x00",
        "rank_10": b"",
        "rank_0.tmp": b"x",
        "other_1": b"x",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "rank_3").mkdir()
    found = look_at_flight_recorder(case, "gloo_control@4", str(tmp_path / "rank_"), [RANK])
    assert [(record.subject.rank, record.outcome) for record in found] == [
        (1, "partial"),
        (3, "unavailable"),
        (10, "partial"),
    ]  # plain pickles, but no dumps
    assert found[0].subject.pid == 4242
    assert found[0].data["bytes"] == 8
    assert Path(case.folder, found[0].files[0]).read_bytes() == b"\x80\x04K\x01.\r\n\x00"
    assert look_at_flight_recorder(case, "c@1", str(tmp_path / "nowhere" / "rank_")) == []


# ------------------------------------------------------------------------------------------- source


TRAIN = """\
import torch.distributed as dist

def train(rank):
    for step in range(10):
        if rank == 0:
            dist.barrier()
        else:
            dist.all_reduce(x)
"""


def test_the_blocks_around_each_ranks_line(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    sites = [
        Site("train.py", 6, "train", 0),
        Site("train.py", 8, "train", 1),
        Site("/x/site-packages/torch/a.py", 3, "f", 1),
        Site("<string>", 1, "", 0),
    ]
    first, second = look_at_source(case, "user_script@2", sites, cwd=str(tmp_path))
    assert (first.subject.rank, second.subject.rank) == (0, 1)
    assert first.data["file"] == "train.py"
    (site,) = first.data["sites"]
    assert (site["line"], site["function"], site["text"]) == (6, "train", "dist.barrier()")
    assert [(block["kind"], block["text"], block["branch"]) for block in site["blocks"]] == [
        ("def", "def train(rank):", "body"),
        ("for", "for step in range(10):", "body"),
        ("if", "if rank == 0:", "body"),
    ]
    assert second.data["sites"][0]["blocks"][-1]["branch"] == "orelse"
    # A second look that stands at the same lines has nothing to add; one at a new line has.
    assert look_at_source(case, "user_script@2", sites, cwd=str(tmp_path)) == []
    (third,) = look_at_source(
        case, "user_script@2", [*sites, Site("train.py", 4, "train", 1)], cwd=str(tmp_path)
    )
    assert [site["line"] for site in third.data["sites"]] == [4]
    assert first.data["digest"] == third.data["digest"]
    path.write_text(TRAIN + "# another state of it\n")
    assert read_source("train.py", str(path), {6}).data["digest"] != first.data["digest"]


def test_the_places_that_a_text_names() -> None:
    text = (
        'Traceback\n  File "/a/train.py", line 3, in step\n    x\nThread 0x7f (most recent call'
        ' first):\n  File "/b c.py", line 9 in run\n  File "x", line\n'
    )
    assert sites_in_text(text, 2) == [
        Site("/a/train.py", 3, "step", 2),
        Site("/b c.py", 9, "run", 2),
    ]


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_fifo, "is a FIFO"),
        (make_socket, "cannot be read"),
        (Path.mkdir, "is a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: path.write_bytes(b"#" * (10 * 2**20)), "larger than"),
        (lambda _path: None, "No such file"),
    ],
    ids=["fifo", "socket", "directory", "device", "symlink loop", "10 MB", "missing"],
)
def test_what_is_no_source_file_is_refused(
    make: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    make(path)
    began = time.monotonic()
    seen = read_source(str(path), str(path), {1})
    assert time.monotonic() - began < 1
    assert seen.outcome == "unavailable"
    assert says in seen.reason
    assert seen.data["sites"] == []


def test_a_file_of_another_user_is_denied(as_nobody: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    path.chmod(0o600)
    seen = as_nobody(lambda: read_source(str(path), str(path), {6}))
    assert seen.outcome == "denied"
    assert "job's user" in seen.reason


@pytest.mark.parametrize(
    "content",
    [
        b"(" * 50_000 + b")" * 50_000,
        b"x = 1\x00\n",
        b"-" * 500_000 + b"1",
        b"def broken(:\n",
        b"x" + b"[0]" * 50_000,
        b"# coding: no-such-code\nx = 1\n",
    ],
    ids=["parentheses", "null byte", "minus", "syntax error", "subscripts", "unknown coding"],
)
def test_a_hostile_source_gives_its_line_and_no_blocks(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(content)
    seen = read_source(str(path), str(path), {1})
    assert seen.outcome in ("partial", "ok")
    (site,) = seen.data["sites"]
    assert len(site["text"]) <= 300
    assert len(site["blocks"]) == 0
    assert seen.reason or content.startswith(b"# coding")


def test_a_line_past_the_end_means_that_the_file_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    seen = read_source(str(path), str(path), {6, 99})
    assert seen.outcome == "partial"
    assert "fewer lines" in seen.reason
    assert [site["line"] for site in seen.data["sites"]] == [6]


def test_another_coding_is_read_as_python_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'Jörg'\n".encode("latin-1"))
    assert read_source(str(path), str(path), {2}).data["sites"][0]["text"] == "name = 'Jörg'"


def test_many_files_are_capped_and_said_so(case: Case, tmp_path: Path) -> None:
    for number in range(source.FILES_CAP + 3):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    found: list[Evidence] = look_at_source(
        case,
        "c@1",
        [Site(str(tmp_path / f"m{number}.py"), 1, "", 0) for number in range(source.FILES_CAP + 3)],
    )
    assert [record.outcome for record in found].count("ok") == source.FILES_CAP
    assert "only the first" in found[-1].reason


ASKS = """\
import time
from service.client import get_batch
from service import files as store
from . import near

def train():
    batch = get_batch(0)
    while batch is None:
        time.sleep(1)
        batch = get_batch(0) or store.newest() or here()

def here():
    return wrapped()

def wrapped():
    return redis.Redis().get("batch")

def unused():
    os.remove("x")
"""


def test_what_a_poll_asks_is_found_through_functions_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ASKS)
    (tmp_path / "service").mkdir()
    (tmp_path / "service/__init__.py").write_text("")
    (tmp_path / "service/client.py").write_text(
        "def get_batch(rank):\n    return urllib.request.urlopen(URL).read()\n"
    )
    (tmp_path / "service/files.py").write_text("def newest():\n    return os.path.getmtime(NAME)\n")

    (site,) = read_source("train.py", str(tmp_path / "train.py"), {9}).data["sites"]

    assert set(site["tries"].split("; ")) == {
        "get_batch",
        "store.newest",
        "here",
        "wrapped",
        "urllib.request.urlopen",
        "os.path.getmtime",
        "redis.Redis",
    }


def test_an_imported_module_that_is_no_file_or_calls_itself_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ASKS)
    (tmp_path / "service").mkdir()
    os.mkfifo(tmp_path / "service/client.py")
    (tmp_path / "service/files.py").write_text("from train import here as newest\n")

    (site,) = read_source("train.py", str(tmp_path / "train.py"), {9}).data["sites"]

    assert "redis.Redis" in site["tries"]
    assert "urlopen" not in site["tries"]
