"""site.yaml: what it rules, that only root's own file counts, and that nothing in it makes the
tool fall or stop a node.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainprobe.checks import BUDGETS, SLOTS
from trainprobe.errors import UsageError
from trainprobe.site import BUDGETS as SITE_BUDGETS
from trainprobe.site import LARGEST_BYTES, Site, read_site, site_of, site_rows
from trainprobe.site import SLOTS as SITE_SLOTS

FULL = """\
forbid: [deep]
fan_out: 64
keep: {folder: /var/spool/trainprobe/, days: 14, most: 200}
thresholds: {lim.nofile: 65536, net.mtu: 9000}
paths: [/home, /data/]
leave_out: [fs.smallfile]
drain: [slurmadmin, "1234"]
inconclusive: {prolog: fail, healthcheck: pass}
stop_s: {prolog: 20.5}
"""
ME = os.getuid()


def written(folder: Path, text: str | bytes = FULL, mode: int = 0o644) -> str:
    path = folder / "site.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return str(path)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder below one that is sticky, as /tmp is: what lies in it is its owner's alone."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_everything_can_be_ruled(place: Path) -> None:
    path = written(place)
    assert read_site(path, ME) == Site(
        forbid=("deep",),
        fan_out=64,
        keep_in="/var/spool/trainprobe",
        keep_days=14,
        keep_most=200,
        thresholds={"lim.nofile": 65536.0, "net.mtu": 9000.0},
        paths=("/home", "/data"),
        leave_out=("fs.smallfile",),
        drain=("slurmadmin", "1234"),
        inconclusive={"prolog": "fail", "healthcheck": "pass"},
        stop_s={"prolog": 20.5},
        path=path,
    )


def test_what_the_rules_mean() -> None:
    site = site_of(FULL, "site.yaml")
    site.refuse("standard", 1000)
    site.refuse("deep", 0)
    with pytest.raises(
        UsageError, match=r"This site does not allow --deep \(site\.yaml\)\. Use --standard"
    ):
        site.refuse("deep", 1000)
    assert (site.may_drain(0), site.may_drain(1234), site.may_drain(99_999)) == (True, True, False)
    assert (
        site.width(None),
        site.width(10),
        site.width(1000),
        Site().width(None),
        Site().width(7),
    ) == (64, 10, 64, None, 7)
    assert site.unknown(["lim.nofile", "net.mtu"]) == (
        "site.yaml names the check fs.smallfile, which there is not.",
    )
    assert Site(forbid=("standard", "deep")).largest(1000) == "quick"


def test_its_words_are_those_of_the_checks() -> None:
    assert (SITE_BUDGETS, SITE_SLOTS) == (BUDGETS, SLOTS)
    assert all(row.says.endswith((".", ")")) for row in site_rows())


def test_no_file_is_no_rule(place: Path) -> None:
    assert read_site(str(place / "none.yaml")) == Site()
    assert read_site(written(place, "# nothing yet\n"), ME) == Site(path=str(place / "site.yaml"))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_ignored_and_that_is_said(place: Path, mode: int) -> None:
    site = read_site(written(place, mode=mode), ME)
    assert (site.forbid, len(site.notes)) == ((), 1)
    assert f"is ignored: others may write it (mode {mode:04o})" in site.notes[0]


def test_a_folder_that_others_can_write_is_no_place_for_it(place: Path) -> None:
    path = written(place)
    place.chmod(0o775)
    assert "others may write" in read_site(path, ME).notes[0]


@pytest.mark.root
@pytest.mark.skipif(ME != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_ignored_also_behind_a_link(place: Path) -> None:
    path = written(place)
    os.chown(path, 1000, 1000)
    (place / "link.yaml").symlink_to(path)
    for name in (path, str(place / "link.yaml")):
        assert "is ignored: it belongs to user 1000" in read_site(name).notes[0]


def test_what_is_no_plain_file_is_ignored_and_nobody_waits(place: Path) -> None:
    os.mkfifo(place / "fifo", 0o644)
    assert "no plain file" in read_site(str(place / "fifo"), ME).notes[0]
    assert "no plain file" in read_site(str(place), ME).notes[0]
    assert "ignored" in read_site(str(place / "fifo" / "site.yaml"), ME).notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"forbid: [quick]", "forbid knows standard and deep, not 'quick'"),
        (b"fan_out: 0", "line 1: fan_out needs a whole number from 1 to 4096"),
        (b"fan_out: " + b"9" * 6000, "fan_out needs a whole number"),
        (b"a: 1\n", "a is no setting"),
        (b"forbid: [deep]\nforbid: []", "line 2: forbid stands here a second time"),
        (b"inconclusive: {prologue: pass}", "inconclusive knows step, prolog"),
        (b"inconclusive: {prolog: maybe}", "inconclusive.prolog needs one of pass, fail"),
        (b"thresholds: {x: .inf}", "thresholds.x needs a number"),
        (b"keep: {folder: tmp}", "keep.folder needs the full path"),
        (b"keep: {folder: /..}", "keep.folder needs the full path"),
        (b"paths: [/data, home]", "paths needs the full path"),
        (b"paths: /data", "paths needs a list"),
        (b"forbid: !!python/object/apply:os.system [echo]", "not 'echo'"),
        (b"a: &x [*x, *x]", "aliases"),
        (b"[" * 5000, "nested too deeply"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * (LARGEST_BYTES + 1), "larger than 64 kB"),
        (b"just words", "the file must hold"),
    ],
)
def test_what_cannot_be_understood_forbids_and_stops_nobody(
    place: Path, text: bytes, words: str
) -> None:
    site = read_site(written(place, text), ME)
    assert (site.forbid, site.may_drain(0), site.may_drain(1000), site.leave_out) == (
        ("deep",),
        True,
        False,
        (),
    )
    assert (len(site.notes), words in site.notes[0]) == (1, True), site.notes


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_end_in_rules_or_in_a_sentence(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = read_site(written(Path(folder), raw), ME)
    assert site.notes == () or site.notes[0].endswith(".")
