"""Score the model's stress test on models of many kinds and on what people do wrong in them.

    python -m tests.gallery.models.field [--part development|held-out] [--only WORD] [--jobs N]
    [--missed] [--again]

By the public command line, without hints beside the two functions. Half of the programs, drawn by
a seed before the first run, are held out: they are judged once. What a program was judged at first
stays in field.json under `first`; a later judgement stands beside it under `now`.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import json
import os
import random
import secrets
import shutil
import subprocess
import tempfile
from typing import Any, NamedTuple

from tests.gallery.models.architectures import PROGRAMS
from tests.gallery.models.score import LIMIT_S, Said, by_command, clean
from tests.gallery.models.truth import edited
from trainprobe.shipped import read_yaml

HERE = os.path.dirname(__file__)
SOUND = os.path.join(PROGRAMS, "field")
FAULTS = os.path.join(HERE, "field_faults.yaml")
RESULTS = os.path.join(HERE, "field.json")
SEED = 10
PARTS = ("development", "held-out")


class Specimen(NamedTuple):
    """A program, and the causes that an expert accepts first; a sound one has none."""

    name: str
    program: str
    causes: tuple[str, ...]

    @property
    def kind(self) -> str:
        return "planted" if self.causes else "sound"

    @property
    def functions(self) -> tuple[str, str]:
        """Its factory and its sample: the last two functions; the sample is empty if the tool
        has to make the batch.
        """
        names = [
            one.name for one in ast.parse(self.program).body if isinstance(one, ast.FunctionDef)
        ]
        return (names[-2], names[-1]) if names[-1] != "make" else ("make", "")


def sound() -> list[Specimen]:
    """The sound programs, by name."""
    found = []
    for file_name in sorted(os.listdir(SOUND)):
        if file_name.endswith(".py"):
            with open(os.path.join(SOUND, file_name), encoding="utf-8") as file:
                found.append(Specimen(file_name[:-3], file.read(), ()))
    return found


def planted() -> list[Specimen]:
    """The faulty programs: a sound one with a few lines changed."""
    bases = {one.name: one.program for one in sound()}
    with open(FAULTS, encoding="utf-8") as file:
        rows = read_yaml(file.read())
    found = []
    for row in rows:
        text = bases[row["base"]]
        for edit in row["edits"]:
            text = edited(text, edit["old"], edit["new"], row["name"])
        found.append(Specimen(row["name"], text, tuple(row["causes"])))
    return found


def parts() -> dict[str, str]:
    """The part of each specimen: half of the sound and half of the planted, by the seed."""
    draw, found = random.Random(SEED), {}
    for kind in (sound(), planted()):
        names = sorted(one.name for one in kind)
        held_out = set(draw.sample(names, len(names) // 2))
        found.update({name: PARTS[name in held_out] for name in names})
    return found


def judgement(one: Specimen, said: Said) -> dict[str, Any]:
    """What the tool said and whether it is right: for a planted fault its cause first, for a sound
    model no finding.
    """
    ids = list(dict.fromkeys(finding.cause for finding in said.findings))
    row: dict[str, Any] = {
        "verdict": said.answer,
        "causes": ids,
        "findings": [
            [finding.measure, finding.what, finding.where] for finding in said.findings[:8]
        ],
        "right": ids[:1] != [] and ids[0] in one.causes if one.causes else not said.findings,
        "took_s": round(said.took_s, 1),
    }
    if one.causes:
        row["alone"] = row["right"] and set(ids) <= set(one.causes)
    if said.open:
        row["unanswered"] = [clean(text) for text in said.open]
    if not said.findings:
        row["says"] = clean(said.says)
    return row


def judged(one: Specimen) -> dict[str, Any]:
    """Ask the command line about a copy under a name that says nothing."""
    folder = tempfile.mkdtemp(prefix="field-")
    name = f"m{secrets.token_hex(4)}.py"
    try:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(one.program)
        model, sample = one.functions
        words = [
            "--model",
            f"{name}:{model}",
            *(["--sample", f"{name}:{sample}"] if sample else []),
        ]
        return judgement(one, by_command(folder, words))
    except (subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
        return judgement(one, Said([], "none", f"{type(error).__name__}: {error}", [], LIMIT_S))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of each part, of the first and of the latest judgement."""
    found: dict[str, Any] = {}
    for part in PARTS:
        for when in ("first", "now"):
            mine = [(row, row.get(when, row["first"])) for row in rows if row["part"] == part]
            bad = [one for row, one in mine if row["kind"] == "planted"]
            fine = [one for row, one in mine if row["kind"] == "sound"]
            found.setdefault(part, {})[when] = {
                "planted": len(bad),
                "right": sum(one["right"] for one in bad),
                "alone": sum(one["alone"] for one in bad),
                "sound": len(fine),
                "without_finding": sum(one["right"] for one in fine),
                "healthy": sum(one["verdict"] == "healthy" for one in fine),
            }
    return found


def read(path: str) -> dict[str, dict[str, Any]]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {row["name"]: row for row in json.load(file)["rows"]}


def write(rows: dict[str, dict[str, Any]], path: str) -> None:
    order = sorted(rows.values(), key=lambda row: (row["part"], row["kind"], row["name"]))
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump({"totals": totals(order), "rows": order}, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.new", path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument("--only", action="append", default=[], help="a part of the name")
    parser.add_argument("--kind", choices=("sound", "planted"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--missed", action="store_true", help="only what was not right last time")
    parser.add_argument(
        "--again", action="store_true", help="what is held out a second time, beside the first"
    )
    parser.add_argument("--results", default=RESULTS)
    given = parser.parse_args()
    part_of = parts()
    rows = read(given.results)
    chosen = [
        one
        for one in [*sound(), *planted()]
        if part_of[one.name] == given.part
        and (not given.kind or one.kind == given.kind)
        and (not given.only or any(word in one.name for word in given.only))
        and not (given.missed and _latest(rows, one.name).get("right"))
        and not (given.part == PARTS[1] and one.name in rows and not given.again)
    ]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        waiting = {pool.submit(judged, one): one for one in chosen}
        for done in concurrent.futures.as_completed(waiting):
            one, row = waiting[done], done.result()
            known = rows.setdefault(
                one.name, {"name": one.name, "kind": one.kind, "part": part_of[one.name]}
            )
            known["now" if "first" in known else "first"] = row
            mark = "ok  " if row["right"] else "MISS"
            print(
                f"{mark} {one.kind} {one.name}: {row['verdict']} {row['causes']}"
                f" {row['findings'][:3]} {row.get('unanswered', '')} {row['took_s']} s",
                flush=True,
            )
            write(rows, given.results)
    print(json.dumps(totals(list(rows.values())), indent=1))


def _latest(rows: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    row = rows.get(name, {})
    return dict(row.get("now", row.get("first", {})))


if __name__ == "__main__":
    main()
