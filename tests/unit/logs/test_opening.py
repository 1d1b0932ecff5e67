"""Bytes of text out of whatever lies on the disk."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

from trainprobe.logs.opening import PIECE_BYTES, NoLogError, Opened
from trainprobe.logs.read_ahead import ReadAhead

TEXT = "".join(f"step {number} loss {1 / (number + 1):.4f}\n" for number in range(20_000)).encode()
PACKED = {
    "": TEXT,
    "gzip": gzip.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": partial(
        bz2.compress, compresslevel=1
    ),  # blocks of 100 kB, so that some come before the cut
    "zstd": zstandard.ZstdCompressor().compress,
}


def read(path: Path | str) -> tuple[bytes, Opened]:
    feed = ReadAhead(str(path))
    content = b"".join(feed.read(time.monotonic() + 20))
    assert feed.opened is not None
    return content, feed.opened


@pytest.mark.parametrize("how", PACKED)
def test_what_is_packed_is_unpacked_by_its_content(how: str, tmp_path: Path) -> None:
    (tmp_path / "any.name").write_bytes(PACKED[how])
    content, opened = read(tmp_path / "any.name")
    assert content == TEXT
    assert (opened.compression, opened.outcome, opened.read_bytes) == (how, "ok", len(PACKED[how]))


@pytest.mark.parametrize("how", ["gzip", "xz", "bzip2", "zstd"])
def test_streams_one_after_the_other_are_one_text(how: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(PACKED[how] * 3)
    assert read(tmp_path / "log")[0] == TEXT * 3


@pytest.mark.parametrize("how", ["gzip", "xz", "bzip2", "zstd"])
def test_a_stream_that_is_cut_off_is_read_as_far_as_it_goes(how: str, tmp_path: Path) -> None:
    text = (
        os.urandom(400_000).hex().encode() + b"\n"
    )  # packs badly, so that several blocks come before the cut
    packed = PACK[how](text)
    (tmp_path / "log").write_bytes(packed[: len(packed) * 2 // 3])
    content, opened = read(tmp_path / "log")
    assert text.startswith(content)
    assert len(content) > len(text) // 8
    if how != "zstd":  # its stream reader takes a missing end for the end
        assert opened.outcome == "partial"
        assert "cut off" in opened.reason


def test_damage_in_the_middle_keeps_what_comes_before(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(400_000).hex().encode()))
    packed[300_000:300_100] = b"\xff" * 100
    (tmp_path / "log").write_bytes(packed)
    content, opened = read(tmp_path / "log")
    assert len(content) > 100_000
    assert opened.outcome == "partial"


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_other_codings_become_utf_8(coding: str, tmp_path: Path) -> None:
    said = "step 1 loss 0.5 für\nstep 2 loss 0.4\n" * 50
    (tmp_path / "log").write_bytes(said.encode(coding))
    assert read(tmp_path / "log")[0].decode() == said


def test_a_bomb_is_read_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(b"a line of a log\n" * 4_000_000, 1))
    feed = ReadAhead(str(tmp_path / "log"))
    sizes = [len(piece) for piece in feed.read(time.monotonic() + 30)]
    assert sum(sizes) == 64_000_000
    assert max(sizes) <= PIECE_BYTES


def test_a_file_of_holes_costs_nothing(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as file:
        file.truncate(200 * 2**30)
        file.seek(100 * 2**30)
        file.write(b"step 1\n" * 10)
    began = time.monotonic()
    assert b"step 1\n" * 10 in read(tmp_path / "log")[0]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(range(256)) * 20, "no text"),
        (b"PK\x03\x04" + b"x" * 100, "zip archive"),
        (b"\x7fELF" + b"\0" * 100, "program"),
        (gzip.compress(b"name".ljust(257, b"\0") + b"ustar" + b"\0" * 300), "tar archive"),
    ],
    ids=["bytes", "zip", "elf", "tar"],
)
def test_what_is_no_text_is_refused_with_a_reason(
    content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(NoLogError, match=words):
        read(tmp_path / "log")


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        began = time.monotonic()
        with pytest.raises(NoLogError, match=r"is a (?:FIFO|device) and was not read"):
            read(tmp_path / name)
        assert time.monotonic() - began < 2


def test_a_log_that_grows_has_an_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(TEXT * 20)
    size = log.stat().st_size
    feed = ReadAhead(str(log))
    total = 0
    with open(log, "ab") as file:
        for piece in feed.read(time.monotonic() + 20):
            total += len(piece)
            file.write(b"more\n" * 100_000)
            file.flush()
    assert total == size


def test_a_file_that_vanishes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone")


def test_no_time_is_said(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(b"a line of a log\n" * 4_000_000, 1))
    feed = ReadAhead(str(tmp_path / "log"))
    pieces = feed.read(time.monotonic() + 0.5)
    first = len(next(pieces))
    time.sleep(0.6)
    assert first + sum(len(piece) for piece in pieces) < 64_000_000
    assert feed.opened is not None
    assert "no time was left" in feed.opened.reason
