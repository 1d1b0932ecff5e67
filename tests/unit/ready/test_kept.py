"""The cases of slots: kept where the site says, judged again by `explain`, removed when old or
too many, and nothing else ever.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainprobe.ready.case_folders import DAY_S, keep, new_folder, place_in, prune
from trainprobe.ready.local_checks import CheckResult
from trainprobe.saved_case import read_case
from trainprobe.site import Site

TOLD = [
    CheckResult(
        "checks",
        "machine",
        {
            "program": "machine",
            "checks": [{"id": "host.swap", "state": "ok"}],
            "open": "",
            "dropped": [],
        },
        began=5.0,
        took_s=0.5,
    )
]


def made(folder: Path, name: str, age_days: float) -> Path:
    place = folder / f"ready-prolog-node1-20261122T0500{name}-7"
    keep(TOLD, folder=str(place), host="node1", slot="prolog", budget="quick", argv=("trainprobe",))
    moment = 1_800_000_000 - age_days * DAY_S
    os.utime(place / "case.json", (moment, moment))
    return place


def left(folder: Path) -> list[str]:
    return sorted(path.name[-4:-2] for path in folder.iterdir())


def test_a_kept_case_holds_what_was_told(tmp_path: Path) -> None:
    case = read_case(str(made(tmp_path, "01", 0)))
    assert [(one.kind, one.cell, one.subject.host) for one in case.evidence] == [
        ("ready", "checks", ""),
        ("checks", "checks", "node1"),
    ]
    assert (case.meta["command"], case.evidence[1].data["checks"][0]["id"]) == (
        "ready",
        "host.swap",
    )


def test_its_place_is_a_new_folder_in_that_of_the_site(tmp_path: Path) -> None:
    assert place_in(Site(), host="node1", slot="prolog") == ""
    place = place_in(Site(keep_in=str(tmp_path)), host="../node 1", slot="prolog")
    assert (
        os.path.dirname(place),
        os.path.basename(place).startswith("ready-prolog-.._node_1-2"),
    ) == (str(tmp_path), True)


def test_a_place_that_somebody_made_before_is_not_taken(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").symlink_to(theirs)
    with pytest.raises(FileExistsError):
        new_folder(str(tmp_path / "kept" / "a"))
    new_folder(str(tmp_path / "kept" / "b"))
    assert (tmp_path / "kept" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("site", "kept"),
    [
        (Site(), ["01", "02", "03"]),
        (Site(keep_days=5), ["01", "02"]),
        (Site(keep_most=1), ["01"]),
        (Site(keep_days=1, keep_most=2), ["01"]),
    ],
)
def test_what_is_old_or_too_many_goes(tmp_path: Path, site: Site, kept: list[str]) -> None:
    for name, age in (("01", 0.5), ("02", 4), ("03", 9)):
        made(tmp_path, name, age)
    prune(
        Site(keep_in=str(tmp_path), keep_days=site.keep_days, keep_most=site.keep_most),
        1_800_000_000,
    )
    assert left(tmp_path) == kept


def test_nothing_else_is_ever_removed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    real = made(elsewhere, "09", 100)
    keeping = tmp_path / "cases"
    keeping.mkdir()
    (keeping / "ready-prolog-node1-20261122T050001-7").symlink_to(real)
    (keeping / "ready-prolog-node1-20261122T050002-7").mkdir()
    (keeping / "results").mkdir()
    (keeping / "ready-prolog-node1-20261122T050003-7").write_text("a file")
    assert prune(Site(keep_in=str(keeping), keep_days=1, keep_most=1), 1_800_000_000 + DAY_S) == 0
    assert (len(list(keeping.iterdir())), real.exists()) == (4, True)
    assert prune(Site(keep_in=str(tmp_path / "none"), keep_days=1)) == 0
