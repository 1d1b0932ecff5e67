"""The case: a folder that keeps every piece of evidence, written line by line so that it survives
the death of this process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import stat
import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import (
    Any,
    Callable,
    Collection,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    Union,
)

from trainprobe import __version__
from trainprobe.errors import UsageError
from trainprobe.model.codec import to_json
from trainprobe.model.evidence import Evidence, LookOutcome
from trainprobe.model.record_classes import RecordClass, Table
from trainprobe.model.subjects import JOB, Subject
from trainprobe.redact import Redactor, clean
from trainprobe.regular_files import open_regular
from trainprobe.saved_case import EVIDENCE, META, SCHEMA, WITH_CLASSES, read_case, why

FILES = "files"
MOST_FILE_BYTES = 64 * 2**20
ANOTHER = "Name another folder with --case DIR."
NEW = "Begin a new case."


class Case:
    """An open case, safe to use from several threads.

    After `create` nothing here raises for a full or broken disk: `trouble` then holds one sentence,
    and evidence goes on in memory.
    """

    def __init__(self, folder: str, name: str, redactor: Redactor) -> None:
        self.folder, self.name, self.redactor = folder, name, redactor
        self._evidence: List[Evidence] = []
        self._unwritten: List[Tuple[str, bytes]] = []
        self._lock = threading.RLock()
        # Called with each piece of evidence before it is written.
        self.heard: Callable[[Evidence], None] = lambda _: None
        self._stuck = self._lost = ""
        self._announced = False
        self._leaving: Set[str] = set()  # forgotten, and perhaps still in the folder
        self._torn, self._size, self._sealed, self._last = False, 0, False, 0
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = os.open(os.path.join(folder, EVIDENCE), flags, 0o600)
        _lock(self._fd)

    @classmethod
    def create(cls, folder: Optional[str], command: str, argv: Sequence[str]) -> Case:
        """Make the folder of a new case, by default ./trainprobe-<UTC time>-<host>/; UsageError
        when that cannot be.

        A case that is in the folder already is moved below it, to earlier-1, earlier-2 …, and never
        mixed with the new one.
        """
        redactor = Redactor(os.environ)
        host = socket.gethostname()
        name = folder if folder is not None else _default_name(host)
        try:
            _make_room(name)
            meta = {
                "schema": SCHEMA,
                "command": command,
                "argv": redactor.data(list(argv))[0],
                "tool": {"name": "trainprobe", "version": __version__},
                "created": time.time(),
                "host": host,
                "case": name,
            }
            _write_whole(os.path.join(name, META), json.dumps(meta, indent=1).encode() + b"\n")
            os.makedirs(os.path.join(name, FILES), mode=0o700)
            return cls(os.path.abspath(name), name, redactor)
        except (OSError, ValueError) as error:
            problem = f"The case folder {name} cannot be written: {why(error)}."
            raise UsageError(problem, ANOTHER) from error

    @classmethod
    def reopen(cls, folder: str) -> Case:
        """Open a saved case to continue it; new evidence is appended.

        A torn last line is cut off: it cannot be read. UsageError when `folder` is no case, cannot
        be written, or is being written.
        """
        saved = read_case(folder)
        if saved.damage and not saved.evidence:
            raise UsageError(f"{folder} cannot be continued: {saved.damage[0]}", NEW)
        try:
            size = _whole_lines(os.path.join(folder, EVIDENCE))
            os.makedirs(os.path.join(folder, FILES), mode=0o700, exist_ok=True)
            case = cls(os.path.abspath(folder), folder, Redactor(os.environ))
        except OSError as error:
            raise UsageError(f"{folder} cannot be continued: {why(error)}.", NEW) from error
        case._evidence = list(saved.evidence)
        case._size = size
        numbers = (record.id[1:] for record in saved.evidence)
        case._last = max((int(number) for number in numbers if number.isdecimal()), default=0)
        return case

    def __enter__(self) -> Case:  # noqa: PYI034 - Self is newer than Python 3.9
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    @property
    def evidence(self) -> Tuple[Evidence, ...]:
        with self._lock:
            return tuple(self._evidence)

    @property
    def trouble(self) -> str:
        """One sentence about what could not be saved, or ""."""
        return self._stuck or self._lost

    def add(  # noqa: PLR0913 - the fields of Evidence
        self,
        kind: str,
        *,
        subject: Subject = JOB,
        cell: str = "",
        source: str = "",
        began: Optional[float] = None,
        took_s: float = 0.0,
        outcome: LookOutcome = "ok",
        reason: str = "",
        data: Optional[Mapping[str, Any]] = None,
        files: Sequence[str] = (),
    ) -> Evidence:
        """Keep one piece of evidence and return it as it was kept: with its id, cleaned, and
        without secrets. `began` None means just now.
        """
        try:
            hidden, count = self.redactor.data(to_json(data or {}))
        except RecursionError:
            hidden, count, outcome = {}, 0, "partial"
            reason = f"{reason} The data were nested too deeply to be kept.".strip()
        shown_source, in_source = self.redactor.text(clean(source))
        shown_reason, in_reason = self.redactor.text(clean(reason))
        with self._lock:
            new = Evidence(
                f"E{self._last + 1}",
                kind,
                subject,
                self.redactor.text(cell)[0],
                shown_source,
                time.time() - took_s if began is None else began,
                took_s,
                outcome,
                shown_reason,
                hidden,
                tuple(name for name in files if name),
                count + in_source + in_reason,
            )
            if self._sealed:
                return new
            self._last += 1
            self._evidence.append(new)
            self.heard(new)
            row = {**to_json(replace(new, data={})), "data": hidden}  # plain JSON already
            self._unwritten.append((new.id, json.dumps(row).encode() + b"\n"))
            self._write()
        return new

    def keep(self, record: Evidence, **changed: Any) -> Evidence:
        """Keep evidence of another case under an id of this case; `changed` replaces fields."""
        made = ("subject", "cell", "source", "began", "took_s", "outcome", "reason", "data")
        return self.add(
            record.kind, **{**{name: getattr(record, name) for name in made}, **changed}
        )

    def keep_classes(self, classes: Sequence[Tuple[RecordClass, Sequence[int]]]) -> None:
        """Keep the records of classes under ids of this case, each with the place that a record
        has among them all: a class in one line where there is nothing to hide or to clean in any
        record, else one by one. Raises ValueError where they are no evidence.
        """
        if not classes:
            return
        places = sorted(
            (place, number, seat)
            for number, (_, at) in enumerate(classes)
            for seat, place in enumerate(at)
        )
        if not self._are_plain([records for records, _ in classes]):
            several = [records.evidence() for records, _ in classes]
            for _, number, seat in places:
                self.keep(several[number][seat])
            return
        with self._lock:
            if self._sealed:
                return
            ids: List[List[str]] = [[""] * records.count for records, _ in classes]
            for last, (_, number, seat) in enumerate(places, self._last + 1):
                ids[number][seat] = f"E{last}"
            kept = [
                records.changed({("id",): own, ("redacted",): [0]})
                for own, (records, _) in zip(ids, classes)
            ]
            several = [records.evidence() for records in kept]
            found = [several[number][seat] for _, number, seat in places]
            self._last += len(found)
            self._evidence += found
            for new in found:
                self.heard(new)
            self._announce_classes()
            self._unwritten += [(own[0], records.line()) for own, records in zip(ids, kept)]
            self._write()

    def _announce_classes(self) -> None:
        """An older version must not take a case for empty of which it cannot read a line."""
        if self._announced:
            return
        self._announced = True
        path = os.path.join(self.folder, META)
        try:
            with open(path, "rb") as file:
                meta = {**json.load(file), "schema": WITH_CLASSES}
            _write_whole(path, json.dumps(meta, indent=1).encode() + b"\n")
        except (OSError, ValueError) as error:
            self._lost = f"{META} could not be written into the case {self.name}: {why(error)}."

    def _are_plain(self, classes: Sequence[RecordClass]) -> bool:
        """Whether the records of classes can be kept as they are."""
        columns: List[Tuple[str, Sequence[Any]]] = []
        for records in classes:
            if any(records.column("files")) or set(records.column("schema")) != {Evidence.schema}:
                return False
            columns.append(("", records.form.keys))
            for place, column in zip(records.form.places, records.columns):
                if place.__class__ is Table:
                    for table in column:
                        columns += zip((each.name for each in place.columns), table[1:])
                else:
                    columns.append((place.name, column))
        return self.redactor.has_nothing_in(columns)

    def forget(self, ids: Collection[str]) -> None:
        """Drop evidence that later evidence has made worthless, here and in the folder.

        The folder has the old evidence or the new at each moment. Where it cannot be written, the
        lines stay until a later call.
        """
        with self._lock:
            if self._sealed or self._fd < 0:
                return
            self._leaving.update(ids)
            self._evidence = [each for each in self._evidence if each.id not in self._leaving]
            self._unwritten = [each for each in self._unwritten if each[0] not in self._leaving]
            with contextlib.suppress(OSError, ValueError):
                self._rewrite()
                self._leaving.clear()

    def _rewrite(self) -> None:
        """Put a file without the lines of `_leaving` in the place of the evidence."""
        path = os.path.join(self.folder, EVIDENCE)
        unfinished = f"{path}.unfinished"
        old, found = open_regular(path)
        with open(old, "rb") as lines:
            if not os.path.samestat(found, os.fstat(self._fd)):
                raise OSError(0, "another file has its name")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            new = os.open(unfinished, flags, 0o600)
            try:
                _lock(new)
                with open(new, "wb", closefd=False) as file:
                    for line in lines:
                        if line.endswith(b"\n") and _id_in(line) not in self._leaving:
                            file.write(line)
                os.replace(unfinished, path)
            except (OSError, ValueError):
                os.close(new)
                with contextlib.suppress(OSError):
                    os.unlink(unfinished)
                raise
        os.close(self._fd)
        self._fd, self._torn, self._size = new, False, os.fstat(new).st_size

    def keep_file(self, name: str, content: Union[bytes, str, os.PathLike[str]]) -> str:
        """Keep a redacted copy of `content`, bytes or the path of a file, and return its name
        relative to the case.

        The name is changed where it has to be. Of more than 64 MiB the first and the last half of
        that are kept. Text is cleaned; in binary content secrets are overwritten in place. Returns
        an empty string, and leaves `trouble`, when it cannot be kept.
        """
        try:
            whole = content if isinstance(content, bytes) else _read_bounded(content)
            with self._lock:
                relative = self._free_name(name)
                kept = _without_secrets(whole, self.redactor)
                _write_whole(os.path.join(self.folder, relative), kept)
        except (OSError, ValueError) as error:
            self._lost = f"The file {name} could not be kept in the case {self.name}: {why(error)}."
            return ""
        return relative

    def write_derived(self, name: str, text: str) -> bool:
        """Write a file that can be made again from the evidence, whole or not at all. Return
        False when it could not be written.
        """
        try:
            _write_whole(os.path.join(self.folder, name), text.encode("utf-8", "replace"))
        except (OSError, ValueError) as error:
            self._lost = f"{name} could not be written into the case {self.name}: {why(error)}."
            return False
        return True

    def seal(self) -> Tuple[Evidence, ...]:
        """Return all evidence and refuse any that comes later, such as from a thread that missed
        its deadline. What is judged now is then what the folder holds.
        """
        with self._lock:
            self._sealed = True
            return tuple(self._evidence)

    def give_away(self) -> Iterator[Evidence]:
        """Seal the case and give its evidence away piece by piece: the records of thousands of
        ranks take as much memory as what is read from them.
        """
        with self._lock:
            self._sealed = True
            given, self._evidence = self._evidence, []
        given.reverse()
        while given:
            yield given.pop()

    def close(self) -> None:
        """Write what is still unwritten, and close the file. Evidence stays readable here."""
        with self._lock:
            if self._fd >= 0:
                self._write()
                os.close(self._fd)
                self._fd = -1

    def _write(self) -> None:
        """Append what is not written yet. After a full disk it continues where it stopped."""
        try:
            if self._fd < 0:
                raise OSError(0, "it is closed")  # noqa: TRY301 - one handler for every way in which it cannot be written
            while self._unwritten:
                line = (b"\n" if self._torn else b"") + self._unwritten[0][1]
                if os.write(self._fd, line) < len(line):  # a part of a line is useless
                    self._torn = True
                    os.ftruncate(self._fd, self._size)
                    self._torn = False
                    raise OSError(0, "No space left on device")  # noqa: TRY301 - the same
                self._size += len(line)
                self._torn = False
                self._unwritten.pop(0)
            self._stuck = ""
        except OSError as error:
            self._stuck = (
                f"The case {self.name} cannot be written ({why(error)}); evidence from"
                f" {self._unwritten[0][0]} on is in memory only."
            )

    def _free_name(self, name: str) -> str:
        safe = re.sub(r"[^A-Za-z0-9._@=,+-]", "_", name)[-100:].lstrip(".") or "file"
        stem, dot, ending = safe.partition(".")
        place = 1
        while os.path.lexists(os.path.join(self.folder, FILES, safe)):
            place += 1
            safe = f"{stem}-{place}{dot}{ending}"
        return f"{FILES}/{safe}"


def _default_name(host: str) -> str:
    """A folder that is not there yet; the time is in UTC, to the minute."""
    minute = time.strftime("%Y-%m-%dT%H-%M", time.gmtime())
    stem = f"./trainprobe-{minute}-{re.sub(r'[^A-Za-z0-9.-]', '_', host.partition('.')[0])}"
    name, place = f"{stem}/", 1
    while True:
        try:
            os.mkdir(name, 0o700)
        except FileExistsError:
            place += 1
            name = f"{stem}-{place}/"
        except OSError as error:
            problem = f"The case folder {name} cannot be made: {why(error)}."
            raise UsageError(problem, ANOTHER) from error
        else:
            return name


def _make_room(name: str) -> None:
    """Make the folder, or move the case that it holds out of the way; UsageError when it holds
    something else.
    """
    if os.path.exists(name) and not os.path.isdir(name):
        problem = f"The case folder {name} cannot be made: there is a file of that name."
        raise UsageError(problem, ANOTHER)
    os.makedirs(name, mode=0o700, exist_ok=True)
    there = [entry for entry in os.listdir(name) if not entry.startswith("earlier-")]
    if not there:
        return
    if META not in there and EVIDENCE not in there:
        problem = f"The folder {name} holds other things than a case, {min(there)} for one."
        raise UsageError(problem, ANOTHER)
    place = 1
    while os.path.lexists(os.path.join(name, f"earlier-{place}")):
        place += 1
    earlier = os.path.join(name, f"earlier-{place}")
    os.mkdir(earlier, 0o700)
    for entry in there:
        os.rename(os.path.join(name, entry), os.path.join(earlier, entry))


def _write_whole(path: str, content: bytes) -> None:
    """Write all of a file or nothing; who reads it meanwhile sees the old one."""
    unfinished = f"{path}.unfinished"
    try:
        # Whoever made the case may have left a link or a FIFO of that name.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(unfinished, flags, 0o666), "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _id_in(line: bytes) -> str:
    """The id of the record in a line; "" for a class of records, which has several."""
    row = json.loads(line)
    return str(row.get("id") or "") if isinstance(row, dict) else ""


def _whole_lines(path: str) -> int:
    """Cut a torn last line off, and return the size of what is left. Raises OSError, also where
    another program is writing.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "its evidence is no plain file")
        _lock(fd)
        size = end = os.fstat(fd).st_size
        while end and os.pread(fd, 1, end - 1) != b"\n":
            block = max(0, end - 65536)
            found = os.pread(fd, end - block, block).rfind(b"\n")
            end = block + found + 1 if found >= 0 else block
        if end < size:
            os.ftruncate(fd, end)
        return end
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    """Lock the case as long as `fd` is open; OSError if another process holds the lock. Some
    file systems have no locks: there nothing is locked.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(0, "another trainprobe is writing into it") from error
    except OSError:
        pass


def _read_bounded(path: Union[str, os.PathLike[str]]) -> bytes:
    try:
        fd, found = open_regular(os.fspath(path))
    except ValueError as error:
        raise OSError(0, f"it {error}") from error
    with open(fd, "rb") as file:
        if found.st_size <= MOST_FILE_BYTES:
            return file.read(MOST_FILE_BYTES)
        half = MOST_FILE_BYTES // 2
        head = file.read(half)
        file.seek(-half, os.SEEK_END)
        cut = b"\n[trainprobe: %d bytes cut here]\n" % (found.st_size - 2 * half)
        return head + cut + file.read(half)


def _without_secrets(content: bytes, redactor: Redactor) -> bytes:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):  # text as Windows writes it
        return redactor.text(clean(content.decode("utf-16", "replace")))[0].encode("utf-8")
    if b"\0" in content[:8192]:
        return redactor.blob(content)[0]
    return redactor.text(clean(content.decode("utf-8", "replace")))[0].encode("utf-8")
