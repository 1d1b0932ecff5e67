"""Make each situation afresh, look at it some times, and write down what came.

    python -m tests.gallery.nodes.once_wrong [--only WORD,...] [--looks 5] [--lane 94]
    [--out FILE] [--folder DIR]

As root, on two cores some minutes a situation. Rows of other situations in the results are kept.
Ray is used where TRAINPROBE_RAY names the bin folder of an environment with Ray and torch.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.gallery.nodes.once_wrong import EVERY, RESULTS
from tests.gallery.nodes.once_wrong.situation import Seen, Situation
from tests.gallery.nodes.score import settled
from tests.gallery.nodes.stand import Stand, standing, why_not

UNANSWERED = ("No node has shown a training job", "Nothing was decided in time")


def row(seen: Seen, wrong: Sequence[str]) -> dict[str, Any]:
    """What is kept of a look: nothing that tells the machine."""
    first = seen.first
    return {
        "exit": seen.exit_code,
        "verdict": seen.report.get("verdict", ""),
        "cause": first.get("id", ""),
        "hosts": list(first.get("hosts", ())),
        "ranks": list(first.get("ranks", ())),
        "exclude": list(seen.report.get("readiness", {}).get("exclude", ())),
        "took_s": round(seen.took_s, 1),
        "wrong": list(wrong),
    }


def looked(
    stand: Stand, situation: Situation, folder: Path, looks: int
) -> Iterator[dict[str, Any]]:
    """Make the situation once, and look at it so many times. A look that nobody answered in time
    is repeated, as often as there are looks: the machine is shared, and may stop for some seconds.
    """
    (folder / "made").mkdir(parents=True)
    spare = looks
    with situation.made(stand, folder / "made") as look:
        for number in range(looks):
            repeated = 0
            while True:
                own = folder / f"{number}-{repeated}"
                own.mkdir()
                seen = look(own)
                (own / "said.txt").write_text(seen.said, encoding="utf-8")
                wrong = situation.wrongs(seen)
                if not (wrong and spare and unanswered(seen)):
                    break
                spare, repeated = spare - 1, repeated + 1
            yield row(seen, wrong) | ({"repeated": repeated} if repeated else {})


def unanswered(seen: Seen) -> bool:
    return seen.exit_code is None or any(words in seen.said for words in UNANSWERED)


def played(stand: Stand, situation: Situation, folder: Path, looks: int) -> dict[str, Any]:
    """The rows of one situation. One that could not be made is a row of its own: nothing of the
    tool was tried.
    """
    found: dict[str, Any] = {"situation": situation.name, "looks": []}
    lacking = situation.lacking()
    if lacking:
        return {**found, "not_made": lacking}
    try:
        for one in looked(stand, situation, folder, looks):
            found["looks"].append(one)
            told = "; ".join(one["wrong"]) or "right"
            sys.stdout.write(f"{situation.name:28s} {one['took_s']:6.1f} s  {told}\n")
            sys.stdout.flush()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as why:
        if not found["looks"]:
            found["not_made"] = f"{type(why).__name__}: {why}"
        sys.stdout.write(f"{situation.name:28s} not made: {why}\n")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where every look was right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="words that names begin with, by commas")
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--lane", type=int, default=94)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args(arguments)
    reason = why_not()
    if reason:
        sys.stderr.write(f"no cluster on this machine: {reason}\n")
        return 3
    chosen = [one for one in EVERY if one.name.startswith(tuple(asked.only.split(",")))]
    # not below /tmp, which some situations fill
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="once-wrong-", dir="/srv"))
    right = True
    with standing(folder / "stand", asked.lane) as stand:
        for situation in chosen:
            place = folder / re.sub(r"[^\w.-]+", "-", situation.name)
            found = played(stand, situation, place, asked.looks)
            right = right and bool(found["looks"]) and not any(x["wrong"] for x in found["looks"])
            keep(found, asked.out)
            settled(stand)
    return 0 if right else 1


def keep(found: dict[str, Any], file: Path) -> None:
    """Put these rows in the place of the earlier ones, in the order of the situations."""
    rows = {one["situation"]: one for one in read(file)} | {found["situation"]: found}
    order = [one.name for one in EVERY]
    kept = [rows[name] for name in order if name in rows]
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
