"""The case on disk: what is written can be read, and neither a bad folder nor a full disk nor
nonsense loses anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from trainprobe.case import Case
from trainprobe.errors import UsageError
from trainprobe.model.subjects import Subject
from trainprobe.saved_case import read_case

SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUv"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "case")


def test_what_is_added_is_read_again_as_it_was(folder: str) -> None:
    with Case.create(folder, "diagnose", ["--nproc", "4"]) as case:
        case.add(
            "plan",
            data={"nproc": 4, "ratio": 0.5, "none": None, "text": "ü\n"},
            began=12.5,
            took_s=0.25,
        )
        case.add(
            "stacks.python",
            subject=Subject("rank", rank=3, pid=77, started_ticks=5),
            cell="gloo_control@4",
            outcome="denied",
            reason="no ptrace",
        )
        saved = read_case(folder)
        assert saved.evidence == case.evidence
    assert [each.id for each in saved.evidence] == ["E1", "E2"]
    assert saved.evidence[1].subject.rank == 3
    assert saved.damage == []
    assert saved.meta["command"] == "diagnose"
    assert saved.meta["case"] == folder
    assert case.trouble == ""


def test_a_refusal_needs_a_reason(folder: str) -> None:
    with Case.create(folder, "diagnose", []) as case:
        with pytest.raises(ValueError, match="no reason"):
            case.add("stacks.python", outcome="denied")
        assert case.add("stacks.python", outcome="denied", reason="no ptrace").id == "E1"


def test_each_line_is_there_at_once(folder: str) -> None:
    case = Case.create(folder, "diagnose", [])
    for number in range(3):
        case.add("plan", data={"number": number})
        assert len(read_case(folder).evidence) == number + 1
    case.close()


def test_secrets_never_reach_the_folder(
    folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "opaque-0815-value")
    (tmp_path / "log").write_text(f"login {SECRET} and opaque-0815-value\n")
    with Case.create(folder, "diagnose", ["--token", "given-on-the-line-9", "--", "x"]) as case:
        added = case.add(
            "output",
            source="cat opaque-0815-value",
            reason=SECRET,
            data={"head": f"x {SECRET}", "argv": ["--token", "given-on-the-line-9"]},
        )
        case.keep_file("rank0.out", str(tmp_path / "log"))
        case.keep_file("dump.bin", b"\0\1" + SECRET.encode())
    assert added.redacted == 4
    written = b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
    for secret in (SECRET, "opaque-0815-value", "given-on-the-line-9"):
        assert secret.encode() not in written
    assert b"<hidden:MY_SERVICE_TOKEN>" in written


def test_files_keep_their_name_as_far_as_it_is_safe(folder: str, tmp_path: Path) -> None:
    with Case.create(folder, "diagnose", []) as case:
        names = [
            case.keep_file("rank0.out", b"one\x1b[31m\r\n"),
            case.keep_file("rank0.out", b"two"),
            case.keep_file("../../etc/passwd", b"three"),
        ]
        assert names == ["files/rank0.out", "files/rank0-2.out", "files/_.._etc_passwd"]
        assert [(Path(folder) / name).read_bytes() for name in names] == [
            b"one\n",
            b"two",
            b"three",
        ]
        os.mkfifo(tmp_path / "fifo")
        assert case.keep_file("fifo", str(tmp_path / "fifo")) == ""
        assert "fifo" in case.trouble
        assert case.keep_file("none", str(tmp_path / "nowhere")) == ""
        assert case.add("output", files=[names[0], ""]).files == (names[0],)


def test_several_threads_lose_nothing(folder: str) -> None:
    with Case.create(folder, "diagnose", []) as case:
        threads = [
            threading.Thread(target=lambda: [case.add("plan", data={"n": n}) for n in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    saved = read_case(folder)
    assert [each.id for each in saved.evidence] == [f"E{number}" for number in range(1, 201)]
    assert saved.damage == []


def test_derived_files_are_whole_or_not_there(folder: str) -> None:
    with Case.create(folder, "diagnose", []) as case:
        assert case.write_derived("report.txt", "one\n")
        assert case.write_derived("report.txt", "two\n")
        assert not case.write_derived("nowhere/report.txt", "x")
        assert "nowhere/report.txt" in case.trouble
    assert (Path(folder) / "report.txt").read_text() == "two\n"
    assert sorted(os.listdir(folder)) == ["case.json", "evidence.jsonl", "files", "report.txt"]


# --- the folder


def test_the_default_name_is_new_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        with Case.create(None, "diagnose", []) as case:
            names.append(case.name)
    assert len(set(names)) == 3
    assert all(
        name.startswith("./trainprobe-2") and name.endswith("/") and os.path.isdir(name)
        for name in names
    )


@pytest.mark.parametrize("typed", ["sub/../case", "./case/", "case"])
def test_a_name_stays_as_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with Case.create(typed, "diagnose", []) as case:
        assert case.name == typed
        assert os.path.isabs(case.folder)
    assert read_case(typed).meta["case"] == typed


def test_an_empty_folder_is_taken_and_one_with_other_things_is_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    Case.create(str(tmp_path / "empty"), "diagnose", []).close()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("mine")
    with pytest.raises(
        UsageError, match=r"home holds other things than a case, thesis\.tex for one"
    ):
        Case.create(str(tmp_path / "home"), "diagnose", [])
    assert os.listdir(tmp_path / "home") == ["thesis.tex"]


def test_an_earlier_case_is_moved_aside_and_stays_readable(folder: str) -> None:
    for number in range(3):
        with Case.create(folder, "diagnose", []) as case:
            case.add("plan", data={"number": number})
    numbers = [
        read_case(path).evidence[0].data["number"]
        for path in (f"{folder}/earlier-1", f"{folder}/earlier-2", folder)
    ]
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize(
    "bad", ["{tmp}/file", "{tmp}/file/case", "/proc/nowhere/case", "/dev/null/case", "a\0b"]
)
def test_a_folder_that_cannot_be_is_one_sentence(tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").write_text("")
    name = bad.format(tmp=tmp_path)
    with pytest.raises(UsageError) as caught:
        Case.create(name, "diagnose", [])
    assert name in caught.value.says
    assert caught.value.says.count("\n") == 0
    assert caught.value.exit_code == 2
    assert "--case" in caught.value.do


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(UsageError, match="Permission denied"):
        Case.create(str(tmp_path / "closed" / "case"), "diagnose", [])


# --- a disk that is full


def test_a_full_disk_keeps_evidence_in_memory_and_loses_nothing_written(folder: str) -> None:
    """The limit for file sizes stands for a disk with 4000 bytes left: writes come back short,
    then fail, then there is room again.
    """
    program = f"""
import resource, signal
from trainprobe.case import Case
from trainprobe.saved_case import read_case
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
case = Case.create({folder!r}, "diagnose", [])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
for number in range(20):
    case.add("plan", data={{"text": "x" * 300}})
assert "cannot be written" in case.trouble and "E" in case.trouble, case.trouble
assert len(case.evidence) == 20
saved = read_case({folder!r})
assert 0 < len(saved.evidence) < 20 and not saved.damage, saved
assert case.keep_file("big", b"x" * 9000) == ""
assert not case.write_derived("report.txt", "x" * 9000)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
case.add("plan")
assert [each.id for each in read_case({folder!r}).evidence] == [each.id for each in case.evidence]
assert len(case.evidence) == 21
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted by root")
def test_a_file_system_without_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        with Case.create(str(disk / "case"), "diagnose", []) as case:
            for _ in range(60):
                case.add("output", data={"text": "x" * 3000})
            assert "No space left" in case.trouble
            assert len(case.evidence) == 60
            saved = read_case(str(disk / "case"))
        assert saved.evidence == case.evidence[: len(saved.evidence)]
        assert saved.evidence
        left = subprocess.run(
            ["cp", "/dev/zero", str(disk / "filler")], capture_output=True, check=False
        )
        assert left.returncode
        with pytest.raises(UsageError, match="No space left"):
            Case.create(str(disk / "another"), "diagnose", ["x"])
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


# --- reading what others left


def made(folder: str) -> Path:
    with Case.create(folder, "diagnose", []) as case:
        case.add("plan", data={"nproc": 4})
        case.add("gpus", outcome="unavailable", reason="no driver")
    return Path(folder) / "evidence.jsonl"


def test_a_torn_last_line(folder: str) -> None:
    path = made(folder)
    path.write_bytes(path.read_bytes()[:-20])
    saved = read_case(folder)
    assert [each.id for each in saved.evidence] == ["E1"]
    assert len(saved.damage) == 1
    assert "torn" in saved.damage[0]


@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff\xfe\x80 garbage",
        b"[1, 2]",
        b'"text"',
        b"{",
        b"{}",
        b'{"id": 7, "kind": "plan"}',
        b'{"id": "E9", "kind": "plan", "took_s": "long"}',
        b'{"id": "E9", "kind": "plan", "outcome": "perhaps"}',
        b'{"id": "E9", "kind": "plan", "outcome": "denied"}',
        b'{"id": "E9", "kind": "plan", "subject": [1]}',
        b'{"id": "E9", "kind": "plan", "data": [1]}',
        b'{"id": "E1", "kind": "plan"}',
        b"[" * 100_000,
        b'{"id": "E9", "kind": "plan", "began": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_nonsense_between_good_lines(folder: str, line: bytes) -> None:
    path = made(folder)
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)
    saved = read_case(folder)
    assert [each.id for each in saved.evidence] == ["E1", "E2"]
    assert saved.evidence[0].data == {"nproc": 4}
    assert len(saved.damage) == 1
    assert "Line 2" in saved.damage[0]
    assert len(saved.damage[0]) < 400


def test_much_damage_is_not_told_line_by_line(folder: str) -> None:
    path = made(folder)
    path.write_bytes(b"nonsense\n" * 1000 + path.read_bytes())
    saved = read_case(folder)
    assert len(saved.evidence) == 2
    assert len(saved.damage) == 21


def test_fields_of_a_newer_version_are_kept(folder: str) -> None:
    path = made(folder)
    path.write_bytes(
        json.dumps({"id": "E1", "kind": "plan", "invented_later": [1]}).encode() + b"\n"
    )
    assert read_case(folder).evidence[0].extra == {"invented_later": [1]}


def test_evidence_that_is_gone_is_damage(folder: str) -> None:
    made(folder).unlink()
    saved = read_case(folder)
    assert saved.evidence == ()
    assert "evidence.jsonl" in saved.damage[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "is not a case: it has no case.json"),
        (b"", "case.json cannot be read"),
        (b"\xff\xfe", "case.json cannot be read"),
        (b"[]", "is not a case"),
        (b'{"schema": "something/1"}', "is not a case"),
        (b'{"schema": "trainprobe.case/3"}', "has the format trainprobe.case/3"),
        (b'{"schema": "trainprobe.case/1", "command": 3}', "field command"),
    ],
)
def test_what_is_not_a_case_is_one_sentence_with_its_path(
    folder: str, content: bytes | None, says: str
) -> None:
    made(folder)
    meta = Path(folder) / "case.json"
    meta.unlink()
    if content is not None:
        meta.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_case(folder)
    assert folder in caught.value.says
    assert says in caught.value.says
    assert caught.value.do


def test_no_folder_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        read_case(str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        read_case(str(tmp_path / "file"))


def make(folder: str) -> None:
    with Case.create(folder, "explain", []) as case:
        case.add("plan", data={"nproc": 4})


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 100 * 2**30)


def _linked_away(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize("name", ["evidence.jsonl", "case.json"])
@pytest.mark.parametrize(
    ("put", "why"),
    [
        (_fifo, "is a FIFO"),
        (_endless, "is a link out of its folder"),
        (_linked_away, "is a link out of its folder"),
        (Path.mkdir, "is a folder"),
        (_sparse, "is larger than"),
    ],
)
def test_only_regular_files_of_a_case_are_read(
    folder: str, name: str, put: Callable[[Path], None], why: str
) -> None:
    make(folder)
    path = Path(folder, name)
    path.unlink()
    put(path)
    program = f"""
import resource
from trainprobe.saved_case import read_case
from trainprobe.errors import UsageError
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
try:
    print(read_case({folder!r}).damage)
except UsageError as error:
    print(error)
"""
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert f"{name} {why}" in ran.stdout, ran.stderr


def test_a_link_within_a_case_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    make(str(folder))
    (folder / "evidence.jsonl").rename(folder / "files" / "moved.jsonl")
    (folder / "evidence.jsonl").symlink_to("files/moved.jsonl")
    (tmp_path / "link").symlink_to("case")
    saved = read_case(str(tmp_path / "link"))
    assert saved.evidence
    assert saved.damage == []


def test_lines_without_end_and_without_sense_are_not_read_for_ever(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    make(str(folder))
    before = len(read_case(str(folder)).evidence)
    with open(folder / "evidence.jsonl", "ab") as file:
        file.write(b"x\n" * 500_000)
    saved = read_case(str(folder))
    assert len(saved.evidence) == before
    assert len(saved.damage) < 30
    with open(folder / "evidence.jsonl", "ab") as file:
        file.truncate(900 * 2**20)
    assert len(read_case(str(folder)).damage) < 30


# --- evidence that is dropped


def test_what_is_forgotten_is_in_memory_and_folder_no_more(folder: str) -> None:
    with Case.create(folder, "attach", []) as case:
        several = [case.add("plan", data={"number": number}) for number in range(6)]
        case.forget([one.id for one in several[1:4]])
        assert [one.id for one in case.evidence] == ["E1", "E5", "E6"]
        assert [one.id for one in read_case(folder).evidence] == ["E1", "E5", "E6"]
        assert case.add("plan").id == "E7"
        with pytest.raises(UsageError, match="another trainprobe is writing"):
            Case.reopen(folder)
    assert [one.id for one in read_case(folder).evidence] == ["E1", "E5", "E6", "E7"]
    assert not os.path.exists(os.path.join(folder, "evidence.jsonl.unfinished"))


def test_a_kill_while_evidence_is_dropped_costs_none(folder: str) -> None:
    program = f"""
import os, signal
from trainprobe.case import Case
case = Case.create({folder!r}, "attach", [])
for number in range(20):
    case.add("plan", data={{"number": number}})
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
case.forget(["E2", "E3"])
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == -9
    assert [one.id for one in read_case(folder).evidence] == [f"E{n}" for n in range(1, 21)]
    with Case.reopen(folder) as case:
        case.forget(["E2", "E3"])
    assert len(read_case(folder).evidence) == 18
    assert not os.path.exists(os.path.join(folder, "evidence.jsonl.unfinished"))


def test_a_disk_without_room_for_the_rest_keeps_all_and_is_tried_again(folder: str) -> None:
    program = f"""
import resource, signal
from trainprobe.case import Case
from trainprobe.saved_case import read_case
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
case = Case.create({folder!r}, "attach", [])
for number in range(20):
    case.add("plan", data={{"text": "x" * 300}})
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
case.forget(["E2"])
assert len(case.evidence) == 19 and len(read_case({folder!r}).evidence) == 20
for number in range(20):
    case.add("plan", data={{"text": "x" * 300}})
case.forget([f"E{{number}}" for number in range(3, 38)])
assert [each.id for each in case.evidence] == ["E1", "E38", "E39", "E40"]
case.add("plan")
ids = [each.id for each in read_case({folder!r}).evidence]
assert ids == ["E1", "E38", "E39", "E40", "E41"], ids
assert not case.trouble
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_link_in_the_way_of_the_rest_is_not_followed(folder: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("untouched")
    with Case.create(folder, "attach", []) as case:
        case.add("plan")
        case.add("plan")
        os.symlink(tmp_path / "other", os.path.join(folder, "evidence.jsonl.unfinished"))
        case.forget(["E1"])
    assert (tmp_path / "other").read_text() == "untouched"
    assert [one.id for one in read_case(folder).evidence] == ["E2"]
