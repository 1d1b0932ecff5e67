"""Score the model's stress test on planted faults and on sound models, and write results.json.

    python -m tests.gallery.models.score [--only WORD] [--part development|reporting|sound] [--seed
    N] [--jobs N] [--probe] [--fresh] [--keep]

By the public command line, with two ranks; `--probe` runs the probe itself, without throughput, and
takes causes from the names of its measures. Programs are copied under names that say nothing.
Development and reporting faults are told apart by a hash of the name.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from tests.gallery.models.architectures import ARCHITECTURES
from tests.gallery.models.sound import Sound, sound
from tests.gallery.models.truth import Fault, faults

RESULTS = os.path.join(os.path.dirname(__file__), "results.json")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROBES = os.path.join(ROOT, "probes")
LIMIT_S = 400.0
SUITES = "shapes,masks,tying,precision,serialization,fuzz,ranks"
CAUSES = {
    "shape": "model-shape-fault",
    "mask": "model-mask-fault",
    "tied": "tied-weights-lost",
    "precision": "precision-fault",
    "state": "state-dict-mismatch",
    "resume": "resume-mismatch",
    "ranks": "multi-rank-mismatch",
    "unused": "ddp-unused-parameters",
    "evaluation": "eval-not-deterministic",
    "config": "model-config-fault",
    "gradient": "nan-loss",
}


class Finding(NamedTuple):
    """One thing that was said: the cause, the measure, and what it names."""

    cause: str
    measure: str
    what: str
    where: str


class Said(NamedTuple):
    """What the tool said of one program, the first cause first. `answer` is yes, no, cannot, or
    a verdict; `open` lists suites without an answer.
    """

    findings: list[Finding]
    answer: str
    says: str
    open: list[str]
    took_s: float


def environment() -> dict[str, str]:
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": ROOT,
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def by_probe(folder: str, words: list[str], suites: str = SUITES, probes: str = PROBES) -> Said:
    """The probe itself, its events read."""
    events = os.path.join(folder, "events.jsonl")
    began = time.monotonic()
    command = [
        sys.executable,
        os.path.join(probes, "model_stress.py"),
        *words,
        "--suites",
        suites,
        "--timeout-s",
        str(LIMIT_S - 20),
    ]
    subprocess.run(
        command,
        cwd=folder,
        env={**environment(), "TRAINPROBE_EVENTS": events},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    took_s = time.monotonic() - began
    with open(events, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    found = [
        Finding(
            CAUSES.get(row["property"].split(".")[0], "other"),
            row["property"],
            str(row.get("what", "")),
            str(row.get("where", "")),
        )
        for row in rows
        if row["event"] == "fail" and row.get("property")
    ]
    answer: dict[str, Any] = next((row for row in reversed(rows) if row["event"] == "result"), {})
    unanswered = [
        row["says"]
        for row in rows
        if row["event"] == "note" and (row.get("value") or {}).get("state") == "unanswered"
    ]
    return Said(found, answer.get("answer", "none"), answer.get("says", ""), unanswered, took_s)


def by_command(folder: str, words: list[str]) -> Said:
    """The public command line, its report read."""
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "trainprobe",
        "diagnose",
        "--nproc",
        "2",
        "--only",
        "model_stress",
        *words,
        "--json",
        "-",
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    took_s = time.monotonic() - began
    report = json.loads(done.stdout)
    found = []
    for cause in report["causes"]:
        suspect = report["suspects"][cause["group"]]
        said = suspect.get("findings") or [{}]
        found += [
            Finding(
                cause["id"],
                str(one.get("name", "")),
                str(one.get("what", "")),
                str(one.get("where", "")),
            )
            for one in said
        ]
    rung: dict[str, Any] = next(
        (row for row in report["ladder"] if row["probe"] == "model_stress"), {}
    )
    unanswered = [
        f"{one['name']}: {one['says']}"
        for one in rung.get("suites", [])
        if one.get("outcome") == "unanswered"
    ]
    return Said(found, report["verdict"], report["says"], unanswered, took_s)


def asked(one: Fault | Sound, folder: str, probes: str) -> Said:
    """Copy the program under a name that says nothing and ask the tool."""
    name = f"m{secrets.token_hex(4)}.py"
    program, model, sample = (
        (
            one.program(),
            ARCHITECTURES[one.architecture].model,
            ARCHITECTURES[one.architecture].sample,
        )
        if isinstance(one, Fault)
        else (one.program, one.model, one.sample)
    )
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(program)
    words = ["--model", f"{name}:{model}", *(["--sample", f"{name}:{sample}"] if sample else [])]
    return by_probe(folder, words, SUITES, probes) if probes else by_command(folder, words)


def judged(one: Fault | Sound, said: Said) -> dict[str, Any]:
    """One row of the results."""
    ids = list(dict.fromkeys(finding.cause for finding in said.findings))
    row: dict[str, Any] = {
        "name": one.name,
        "part": one.part if isinstance(one, Fault) else "sound",
        "answer": said.answer,
        "ids": ids,
        "findings": [
            [finding.measure, finding.what, finding.where] for finding in said.findings[:6]
        ],
        "took_s": round(said.took_s, 1),
    }
    if said.open:
        row["unanswered"] = [clean(text) for text in said.open]
    if isinstance(one, Sound):
        row["right"] = (
            not said.findings
            and not said.open
            and said.answer not in ("no", "cannot", "none", "at-risk", "broken")
        )
        if not row["right"] and not said.findings:
            row["says"] = clean(said.says)
        return row
    first = ids[0] if ids else ""
    own = [finding for finding in said.findings if finding.cause in one.causes]
    row["right_id"] = first in one.causes
    row["right_name"] = bool(own) and one.named(own[0].where, own[0].what)
    row["named_somewhere"] = any(one.named(finding.where, finding.what) for finding in own)
    row["wrong_ids"] = [name for name in ids if name not in one.causes]
    row["right"] = row["right_id"] and row["right_name"] and not row["wrong_ids"]
    return row


def clean(text: str) -> str:
    """Without folders and random names."""
    return re.sub(r"\bm[0-9a-f]{8}\b", "PROGRAM", re.sub(r"(/[\w.+-]+)+/", "", text))[:300]


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of each part."""
    found: dict[str, Any] = {}
    for part in ("development", "reporting"):
        mine = [row for row in rows if row["part"] == part]
        if mine:
            found[part] = {
                "faults": len(mine),
                **{
                    key: sum(bool(row[key]) for row in mine)
                    for key in ("right_id", "right_name", "named_somewhere", "right")
                },
            }
            found[part]["with_wrong_ids"] = sum(bool(row["wrong_ids"]) for row in mine)
    mine = [row for row in rows if row["part"] == "sound"]
    if mine:
        found["sound"] = {
            "models": len(mine),
            "with_findings": sum(bool(row["ids"]) for row in mine),
            "right": sum(row["right"] for row in mine),
        }
    times = sorted(row["took_s"] for row in rows if "took_s" in row)
    if times:
        found["seconds"] = {"median": times[len(times) // 2], "longest": times[-1]}
    return found


def write(rows: list[dict[str, Any]], path: str) -> None:
    order = sorted(rows, key=lambda row: (row["part"], row["name"]))
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(
            {
                "totals": totals(order),
                "misses": [row["name"] for row in order if not row["right"]],
                "rows": order,
            },
            file,
            indent=1,
        )
        file.write("\n")
    os.replace(temporary, path)


def shown(row: dict[str, Any], told: bool) -> str:
    """A line for the terminal; of the reporting part only that it is one."""
    if row["part"] == "reporting" and not told:
        return f"reporting  {'ok' if row['right'] else '--'}  {row['took_s']} s"
    more = f" id={row['right_id']} name={row['right_name']}" if "right_id" in row else ""
    return (
        f"{'ok' if row['right'] else 'MISS'}  {row['name']}{more}  {row['ids']} "
        f" {row['findings'][:3]}  {row['took_s']} s"
    )


def one_row(one: Fault | Sound, probes: str, keep: bool) -> dict[str, Any]:
    """Ask and judge; a tool that does not come back is a miss with its reason."""
    folder = tempfile.mkdtemp(prefix="models-")
    try:
        return judged(one, asked(one, folder, probes))
    except (subprocess.TimeoutExpired, ValueError, KeyError, IndexError, OSError) as error:
        return judged(one, Said([], "none", "", [f"{type(error).__name__}: {error}"], LIMIT_S))
    finally:
        if keep:
            print(f"kept: {one.name}: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", action="append", default=[], help="a part of the name; several are possible"
    )
    parser.add_argument(
        "--part", choices=("development", "reporting", "sound"), action="append", default=[]
    )
    parser.add_argument("--seed", type=int, default=0, help="draws the families' configurations")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--probe", action="store_true", help="the probe itself, without throughput")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument(
        "--missed", action="store_true", help="only what was missed or was never asked"
    )
    parser.add_argument("--told", action="store_true", help="show the reporting part's rows too")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the programs")
    parser.add_argument("--results", default=RESULTS)
    given = parser.parse_args()
    chosen: list[Fault | Sound] = [*faults(), *sound(given.seed)]
    chosen = [
        one
        for one in chosen
        if not given.part or (one.part if isinstance(one, Fault) else "sound") in given.part
    ]
    chosen = [
        one for one in chosen if not given.only or any(word in one.name for word in given.only)
    ]
    rows: dict[str, dict[str, Any]] = {}
    if os.path.exists(given.results) and not given.fresh:
        with open(given.results, encoding="utf-8") as file:
            rows = {row["name"]: row for row in json.load(file)["rows"]}
    if given.missed:
        chosen = [one for one in chosen if not rows.get(one.name, {}).get("right")]
    with (
        tempfile.TemporaryDirectory(prefix="probes-") as still,
        concurrent.futures.ThreadPoolExecutor(given.jobs) as pool,
    ):
        # a copy: who edits the probe while it is scored would score a mixture
        probes = (
            shutil.copytree(
                PROBES, os.path.join(still, "probes"), ignore=shutil.ignore_patterns("__pycache__")
            )
            if given.probe
            else ""
        )
        for done in concurrent.futures.as_completed(
            [pool.submit(one_row, one, probes, given.keep) for one in chosen]
        ):
            row = done.result()
            rows[row["name"]] = row
            print(shown(row, given.told), flush=True)
            write(list(rows.values()), given.results)
    print(json.dumps(totals(list(rows.values())), indent=1))


if __name__ == "__main__":
    main()
