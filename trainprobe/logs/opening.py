"""Opens a file or stdin as a stream of text: decompressed, in UTF-8, in bounded pieces."""

from __future__ import annotations

import bz2
import codecs
import errno
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trainprobe.regular_files import open_regular

STDIN = "-"
PIECE_BYTES = 4 * 2**20
RAW_BYTES = 2**20
XZ_MEMORY_BYTES = 96 * 2**20
ZSTD_WINDOW_BYTES = 64 * 2**20
MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
)
# Formats that are no log, even after decompressing a single stream.
FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4; unpack it first: lz4 -d"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; unpack it first"),
    (b"\x7fELF", "is a program, not text"),
    (b"\x89PNG", "is a picture, not text"),
    (b"SQLite format 3\x00", "is a database, not text"),
    (b"\x89HDF", "is an HDF5 file, not text"),
)
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
DUMP_WORDS = (b"pg_status", b"pg_config", b"profiling_name")
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x08\x1b\x00")
_END_MARK = b"\0trainprobe: the end of a zstd stream\0"
Outcome = Literal["ok", "partial", "unavailable", "denied", "timed_out"]


class NoLogError(ValueError):
    """The file cannot be read as text. The message continues the file's name with the reason."""


@dataclass
class Opened:
    """A file that is being read. `bytes` is its size on the disk (None for a stream), `read_bytes`
    the part read so far, `newest` the time of its last write (Unix seconds). An `outcome` other
    than ok has a `reason`.
    """

    path: str
    fd: int
    bytes: int | None = None
    read_bytes: int = 0
    newest: float | None = None
    sparse: bool = False
    compression: str = ""
    outcome: Outcome = "ok"
    reason: str = ""

    def flaw(self, outcome: Outcome, reason: str) -> None:
        """Record why not all could be read; the first reason counts."""
        if not self.reason:
            self.outcome, self.reason = outcome, reason


def open_input(path: str) -> Opened:
    """Open without blocking. Raises OSError, or NoLogError for anything but a regular file."""
    if path == STDIN:
        if os.isatty(0):
            raise NoLogError("is the terminal; pipe something into trainprobe")
        return Opened(path, os.dup(0))
    try:
        fd, found = open_regular(path)
    except ValueError as error:
        raise NoLogError(str(error)) from None
    return Opened(
        path, fd, found.st_size, newest=found.st_mtime, sparse=found.st_blocks * 512 < found.st_size
    )


def pieces(opened: Opened) -> Iterator[bytes]:
    """Yield the text in pieces of some 4 MiB at most. Raises NoLogError at the first piece of a
    file that is no text; damage later on ends the stream, with the reason in `opened.reason`.
    """
    raw = _Raw(opened)
    head = raw.peek()
    for magic, says in FOREIGN:
        if head.startswith(magic):
            raise NoLogError(says)
    opened.compression = next((name for magic, name in MAGIC if head.startswith(magic)), "")
    unpacked = _guarded(_UNPACK[opened.compression](raw), opened)
    first = next(unpacked, b"")
    _check_text(first, opened)
    marked = (coding for mark, coding in _MARKS if first.startswith(mark))
    coding = next(marked, "") or _unmarked_utf16(first)
    if coding:
        yield from _recoded(first, unpacked, coding)
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from unpacked


class _Raw:
    """The bytes of the file up to its size when it was opened, since a log may grow."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._held = b""
        self._place = 0

    def peek(self) -> bytes:
        if not self._held:
            self._held = self.read(65536)
        return self._held

    def read(self, size: int = RAW_BYTES) -> bytes:
        """Return some bytes, empty at the end. A file of size 0, as in /proc, may have content."""
        if self._held:
            held, self._held = self._held[:size], self._held[size:]
            return held
        opened = self._opened
        if opened.sparse:
            self._skip_hole()
        if opened.bytes:
            size = min(size, opened.bytes - self._place)
        if size <= 0:
            return b""
        content = os.read(opened.fd, size)
        self._place += len(content)
        opened.read_bytes += len(content)
        return content

    def _skip_hole(self) -> None:
        """Skip a hole: a log that was truncated under its writer may have gigabytes of zeros."""
        try:
            self._place = os.lseek(self._opened.fd, self._place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                self._place = os.lseek(self._opened.fd, 0, os.SEEK_END)
            else:
                self._opened.sparse = False


def _guarded(stream: Iterator[bytes], opened: Opened) -> Iterator[bytes]:
    damaged = f"the {opened.compression} stream is damaged"
    try:
        yield from stream
    except NoLogError:
        raise
    except OSError as error:
        stopped = error.errno is not None
        why = f"reading stopped: {error.strerror}" if stopped else f"{damaged}: {error}"
        opened.flaw("partial", f"{why}; what comes before was read")
    except Exception as error:
        cut_off = isinstance(error, (zlib.error, lzma.LZMAError, EOFError))
        if not cut_off and type(error).__name__ != "ZstdError":  # zstandard's, without an import
            raise
        why = f"{damaged} or cut off: {error}"
        opened.flaw("partial", f"{why}; what comes before was read")


def _plain(raw: _Raw) -> Iterator[bytes]:
    first = raw.peek()
    if first:
        yield raw.read(len(first))
    while piece := raw.read(PIECE_BYTES):
        yield piece


def _gzip(raw: _Raw) -> Iterator[bytes]:
    """All members; anything after the last one, such as the padding of tapes, is no error."""
    content = raw.read()
    while content[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        while True:
            if piece := member.decompress(content, PIECE_BYTES):
                yield piece
            if member.eof:
                break
            content = member.unconsumed_tail or raw.read()
            if not content:
                if rest := member.flush():
                    yield rest
                raise EOFError("it ends in the middle")
        content = member.unused_data
        if len(content) < 2:
            content += raw.read()


def _xz(raw: _Raw) -> Iterator[bytes]:
    content = raw.read()
    while content[:6] == b"\xfd7zXZ\x00":
        stream = lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)
        yield from _by_stream(stream, content, raw)
        content = stream.unused_data.lstrip(b"\0") or raw.read().lstrip(b"\0")


def _bzip2(raw: _Raw) -> Iterator[bytes]:
    content = raw.read()
    while content[:3] == b"BZh":
        stream = bz2.BZ2Decompressor()
        yield from _by_stream(stream, content, raw)
        content = stream.unused_data or raw.read()


def _by_stream(stream: Any, content: bytes, raw: _Raw) -> Iterator[bytes]:
    while not stream.eof:
        if stream.needs_input and not content:
            content = raw.read()
            if not content:
                raise EOFError("it ends in the middle")
        if piece := stream.decompress(content, PIECE_BYTES):
            yield piece
        content = b""


def _zstd(raw: _Raw) -> Iterator[bytes]:
    import zstandard

    # The library does not report a stream that is cut off. So a frame of our own follows, which
    # decompresses only if the last one was complete.
    source = _Followed(raw, zstandard.compress(_END_MARK))
    held = b""
    with zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).stream_reader(
        source,  # type: ignore[arg-type]
        read_size=RAW_BYTES,
        read_across_frames=True,
    ) as reader:  # it only reads
        while piece := reader.read(PIECE_BYTES):
            held += piece
            if len(held) > len(_END_MARK):
                yield held[: -len(_END_MARK)]
                held = held[-len(_END_MARK) :]
    if held != _END_MARK:
        if held:
            yield held
        raise EOFError("it ends in the middle")


class _Followed:
    """A stream and, at its end, a few bytes more."""

    def __init__(self, raw: _Raw, more: bytes) -> None:
        self._raw, self._more = raw, more

    def read(self, size: int = RAW_BYTES) -> bytes:
        content = self._raw.read(size)
        if not content:
            content, self._more = self._more, b""
        return content


_UNPACK = {"": _plain, "gzip": _gzip, "xz": _xz, "bzip2": _bzip2, "zstd": _zstd}


def _check_text(first: bytes, opened: Opened) -> None:
    """Raise NoLogError for anything but text, which may hold colours, zeros (in a truncated log)
    and any 8-bit characters, but few other control characters.
    """
    sample = first[:65536]
    if sample[257:262] == b"ustar":
        raise NoLogError("is a tar archive; unpack it first: tar xf")
    if any(sample.startswith(mark) for mark, _ in _MARKS) or _unmarked_utf16(sample):
        return
    if sample[:1] == b"\x80" and any(word in sample for word in DUMP_WORDS):
        return  # a pickle of torch's flight recorder, packed or through a pipe
    text = sample.replace(b"\0", b"")
    odd = len(text) - len(text.translate(None, bytes(set(range(32)) - _TEXT_CONTROLS)))
    zeros = len(sample) - len(text)
    binary = odd > 0.02 * len(text) or (zeros > 0.02 * len(sample) and odd)
    one_line = b"\n" not in text and b"\r" not in text
    if binary or (text and one_line and zeros > 0.05 * len(sample)):
        inside = f" inside its {opened.compression} stream" if opened.compression else ""
        raise NoLogError(f"is no text{inside}")


def _unmarked_utf16(sample: bytes) -> str:
    """The coding of UTF-16 without its mark, as PowerShell writes it: every other byte is zero."""
    part = sample[:4096]
    if len(part) < 16:
        return ""
    half = len(part) // 2
    even, odd = part[0 : 2 * half : 2].count(0), part[1 : 2 * half : 2].count(0)
    if odd > 0.8 * half and even < 0.1 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.8 * half and odd < 0.1 * half else ""


def _recoded(first: bytes, rest: Iterator[bytes], coding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(coding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for piece in rest:
        yield decoder.decode(piece).encode("utf-8", "replace")
