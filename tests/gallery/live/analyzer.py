"""PyTorch's own analyzer (`torchfrtrace`) on the dumps of a case: what it answers, as one small
record.

gloo writes its groups under an empty name, at which the analyzer ends with a KeyError. So it is
asked a second time, with the groups
named in the dumps as its entries name them: what it would say if that were mended.
"""

from __future__ import annotations

import ast
import json
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEADLINE_S = 90.0
DUMP = re.compile(r"deep\.rank(\d+)\.(\w+)\.(pickle|json)")
FIRST = re.compile(r"(?:missing ranks: (\{[\d, ]+\}))|(?:error msg: (.*))")
MISSING_DUMPS, NOTHING_MATCHED = "Missing dump files", "We cannot decide"


def asked(case: Path) -> dict[str, Any] | None:
    """Run the analyzer in this Python on the raw dumps among the files of `case`; None where there
    are none.

    `as_written` and `groups_named` are its answers to the dumps as they are and with their groups
    named. Of each, `outcome` is `blamed`,
    `nobody`, `crashed`, `unreadable` or `late`; `ranks` whom its first finding blames; `says` that
    finding or the error. Where it refuses because dumps are missing, it is asked again with
    --allow-incomplete-ranks (`partial`), the kinder way to run it.
    """
    found: dict[str, dict[int, Path]] = {}
    for path in sorted((case / "files").glob("deep.rank*")):
        if match := DUMP.fullmatch(path.name):
            found.setdefault(f"{match[3]} {match[2]}", {})[int(match[1])] = path
    if not found:
        return None
    kind, dumps = max(found.items(), key=lambda item: (item[0].startswith("pickle"), len(item[1])))
    if not kind.startswith("pickle"):
        unread = {
            "outcome": "unreadable",
            "partial": False,
            "ranks": [],
            "says": "it reads pickles, and the dumps are JSON",
        }
        return {"dumps": sorted(dumps), "as_written": unread, "groups_named": unread}
    with tempfile.TemporaryDirectory(prefix="job-") as folder:
        for rank, path in dumps.items():
            shutil.copyfile(path, Path(folder, f"dump_{rank}"))
        as_written = _answer(folder)
        groups = _groups(case)
        for rank in dumps:
            _name_groups(Path(folder, f"dump_{rank}"), groups)
        return {"dumps": sorted(dumps), "as_written": as_written, "groups_named": _answer(folder)}


def _groups(case: Path) -> dict[str, dict[str, str]]:
    """The groups that the ranks told `--deep`, as a dump's `pg_config` has them."""
    looks = [
        json.loads(line)
        for line in (case / "evidence.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rows = [
        row
        for look in looks
        if look["kind"] == "flight_recorder"
        for row in look["data"].get("groups") or []
        if row.get("ranks")
    ]
    return {
        row["name"]: {
            "name": row["name"],
            "desc": row.get("desc") or "",
            "ranks": str(sorted(row["ranks"])),
        }
        for row in rows
        if row["name"]
    }


def _name_groups(dump: Path, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Give the dump the groups that its entries name. It was written by a job that this runner
    started, so it is safe to load.
    """
    data = pickle.loads(dump.read_bytes())
    unnamed = data["pg_config"].pop("", None)
    for name, desc in {tuple(entry["process_group"]) for entry in data["entries"]}:
        known = {**(unnamed or {"name": name, "ranks": "[]"}), **groups.get(name, {})}
        data["pg_config"].setdefault(name, {**known, "name": name, "desc": desc})
    dump.write_bytes(pickle.dumps(data))


def _answer(folder: str) -> dict[str, Any]:
    answer = {"partial": False, "ranks": [], **_run(folder)}
    return (
        {**answer, "ranks": [], **_run(folder, "--allow-incomplete-ranks"), "partial": True}
        if MISSING_DUMPS in answer["says"]
        else answer
    )


def _run(folder: str, *more: str) -> dict[str, Any]:
    words = [
        sys.executable,
        "-m",
        "torch.distributed.flight_recorder.fr_trace",
        folder,
        "--prefix",
        "dump_",
        *more,
    ]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"outcome": "late", "says": f"no answer in {DEADLINE_S:.0f} s"}
    return understood(done.returncode, done.stdout + done.stderr)


def understood(status: int, text: str) -> dict[str, Any]:
    """What the analyzer's output comes to. Only its first finding counts: it says itself that
    pairs after a first mismatch may be wrong.
    """
    finding = FIRST.search(text)
    if finding:
        ranks = (
            sorted(ast.literal_eval(finding[1]))
            if finding[1]
            else sorted({int(rank) for rank in re.findall(r"Culprit rank (\d+)", finding[2])})
        )
        return {
            "outcome": "blamed" if ranks else "nobody",
            "ranks": ranks,
            "says": finding[0][:200],
        }
    if status:
        last = next(
            (
                line
                for line in reversed(text.splitlines())
                if line.strip() and not line.startswith(" ")
            ),
            "",
        )
        return {"outcome": "crashed", "says": last.strip()[:200]}
    return {"outcome": "nobody", "says": NOTHING_MATCHED if NOTHING_MATCHED in text else ""}
