"""Judges recorded runs again, in this process and its copies: `make accuracy-replay`.

python -m tests.gallery.live.replay                  the recordings of the repository, written to results.json
python -m tests.gallery.live.replay --from .accuracy --misses    those of a run under way; only say what is not right
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.gallery.live.baselines import guesses
from tests.gallery.live.kinds import KINDS, Planned, truths
from tests.gallery.live.score import outcome_of
from trainprobe.model.codec import from_json
from trainprobe.model.evidence import Evidence

HERE = Path(__file__).resolve().parent
RECORDED, RESULTS = HERE / "recorded", HERE / "results.json"
KEPT = ("id", "confidence", "points", "named", "ranks", "group", "classes")
# Early recordings have the culprit's rank and the form of the run among the words of the job's
# command, and other people's folders among the locks.
LABELS = re.compile(r"(?: --(?:pick|form|seed|when|most) \w+)+")
CONTAINER = re.compile(r"/\w+/[0-9a-f]{32}(?![0-9a-f])")
USER = re.compile(r"(?<=/tmp/torchinductor_)\w+")
OTHERS = re.compile(
    r"/tmp/(?!job-|trainprobe|torch|pymp-|python|corpus|tokens|cc)[\w.-]+(?:/[\w.-]+)*"
)


def judged(path: Path) -> dict[str, Any]:
    """One recording as a result: what was planned and true, what the tool says, what the
    baselines say. The labels stay out of the judgement.
    """
    meta, records = _read(path)
    report, crash = _concluded(records)
    run = Planned(**meta["plan"])
    kind = KINDS[run.kind]
    result = {
        "key": run.key,
        "plan": meta["plan"],
        "tier": kind.tier,
        "program": kind.script,
        "decoy": run.decoy,
        "truths": [[list(ids), [list(ranks) for ranks in sets]] for ids, sets in truths(run)],
        "verdicts": list(kind.verdicts),
        "attach_s": meta["attach_s"],
        "verdict": report["verdict"],
        "says": report["says"],
        "causes": [{name: cause.get(name) for name in KEPT} for cause in report["causes"]],
        "suspects": [
            {"ranks": suspect["ranks"], "how": suspect["how"]} for suspect in report["suspects"]
        ],
        "guesses": guesses(records, report),
    }
    if crash:
        result["crash"] = crash
    if "torchfrtrace" in meta:
        answers = {
            "torchfrtrace": meta["torchfrtrace"]["as_written"],
            "torchfrtrace, groups named for it": meta["torchfrtrace"]["groups_named"],
        }
        result["analyzer"] = {
            rule: {name: answer[name] for name in ("outcome", "says", "partial")}
            for rule, answer in answers.items()
        }
        result["guesses"] |= {rule: answer["ranks"] for rule, answer in answers.items()}
    result["outcome"] = "failed" if crash else outcome_of(result)
    if said := meta.get("said") or _said(path):
        result["then"] = outcome_of({**result, **said})
    deep = path.with_name(f"{run.key}.deep.xz")
    if not path.name.endswith(".deep.xz") and deep.exists():
        more = judged(deep)
        result["deep"] = {name: more[name] for name in ("outcome", "verdict", "causes", "attach_s")}
        result["guesses"] |= {
            rule: ranks
            for rule, ranks in more["guesses"].items()
            if rule == "lowest sequence" or rule.startswith("torchfrtrace")
        }
        result |= {name: more[name] for name in ("analyzer",) if name in more}
    return result


def _whole(path: Path) -> bool:
    """Leave out the recording of a run that failed: its job did not fall ill as planned, or is
    only now under way.
    """
    return path.parent == RECORDED or path.with_name(f"{_key(path)}.json").exists()


def _key(path: Path) -> str:
    return ".".join(path.name.split(".")[:2])


def _said(path: Path) -> dict[str, Any]:
    """What the tool said when the run was recorded, with the rules of that hour."""
    told = path.with_suffix(".json")
    live = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
    return {name: live[name] for name in ("verdict", "causes") if name in live}


def _concluded(records: list[Evidence]) -> tuple[dict[str, Any], str]:
    """The report, and what failed in the tool: that is a miss, but no reason to lose the other
    runs.
    """
    from trainprobe.pipelines import conclude
    from trainprobe.report.json_report import report_text

    try:
        report = json.loads(report_text(conclude(records, "attach", "case")))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this run
        return {
            "verdict": "crash of the tool",
            "says": "",
            "causes": [],
            "suspects": [],
            "world": {},
        }, f"{type(error).__name__}: {error}"
    return report, next((says for says in report["unexplained"] if " failed in its " in says), "")


def unlabelled(text: str) -> str:
    """Evidence without what this gallery alone could know, and without names of the user, the
    container or others' folders.
    """
    return CONTAINER.sub(
        "/job.slice/0", USER.sub("user", OTHERS.sub("/tmp/other", LABELS.sub("", text)))
    )


def keep(source: Path, into: Path) -> int:
    """Take recordings over into the repository, without labels; older ones of the same runs and
    of kinds that are gone go. Return their bytes.
    """
    into.mkdir(exist_ok=True)
    taken = [
        path
        for path in sorted(source.glob("*.xz"))
        if path.name.split(".")[0] in KINDS and _whole(path)
    ]
    keys = {_key(path) for path in taken}
    for old in into.glob("*.xz"):
        if _key(old) in keys or old.name.split(".")[0] not in KINDS:
            old.unlink()
    total = 0
    for path in taken:
        about, evidence = lzma.decompress(path.read_bytes()).decode().split("\n", 1)
        said = _said(path)
        about = json.dumps({**json.loads(about), **({"said": said} if said else {})})
        packed = lzma.compress(
            f"{about}\n{unlabelled(evidence)}".encode(), preset=9 | lzma.PRESET_EXTREME
        )
        (into / path.name).write_bytes(packed)
        total += len(packed)
    return total


def _read(path: Path) -> tuple[dict[str, Any], list[Evidence]]:
    about, evidence = lzma.decompress(path.read_bytes()).decode().split("\n", 1)
    first, lines = about, unlabelled(evidence).split("\n")
    return json.loads(first), [from_json(Evidence, json.loads(line)) for line in lines]


def rejudge(folder: Path, kinds: Sequence[str] = (), processes: int = 2) -> list[dict[str, Any]]:
    """Judge every recording below `folder`, in the order of their names."""
    paths = [
        path
        for path in sorted(folder.glob("*.xz"))
        if (not kinds or path.name.split(".")[0] in kinds)
    ]
    paths = [
        path
        for path in paths
        if path.name.split(".")[0] in KINDS and not path.name.endswith(".deep.xz") and _whole(path)
    ]
    if processes < 2:
        return [judged(path) for path in paths]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.map(judged, paths, chunksize=4)


def line_of(result: dict[str, Any]) -> str:
    """One miss in one line."""
    run = result["plan"]
    said = [
        f"{cause['id']} {cause['ranks']} {cause['confidence']:.2f} ({cause['points']:g})"
        for cause in result["causes"][:3]
    ] or [result["verdict"]]
    want = " or ".join(
        f"{'/'.join(ids)} {'|'.join(str(ranks) for ranks in sets)}"
        for ids, sets in result["truths"]
    ) or "/".join(result["verdicts"])
    where = f"{run['world']} {run['launch']}, {run['form']}"
    failed = f" ({result['crash']})" if "crash" in result else ""
    return (
        f"{result['outcome']:6} {result['key']:22} ({where}) want {want}; verdict"
        f" {result['verdict']}{failed}; said {'; '.join(said)}"
    )


def misses(results: Iterable[dict[str, Any]]) -> list[str]:
    return [line_of(result) for result in results if result["outcome"] != "right"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, default=RECORDED)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument(
        "--misses", action="store_true", help="only print what is not right; write nothing"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="take the recordings of --from over into the repository first",
    )
    given = parser.parse_args()
    if given.keep:
        print(f"{keep(given.source, RECORDED) / 2**20:.1f} MiB of recordings")
        given.source = RECORDED
    began = time.monotonic()
    results = rejudge(given.source, given.kinds)
    print("\n".join(misses(results)))
    right = sum(result["outcome"] == "right" for result in results)
    print(f"{right} of {len(results)} right; {time.monotonic() - began:.1f} s")
    if not given.misses:
        RESULTS.write_text(
            "[\n" + ",\n".join(json.dumps(result, sort_keys=True) for result in results) + "\n]\n",
            encoding="utf-8",
        )
    return int(any("crash" in result for result in results))


if __name__ == "__main__":
    sys.exit(main())
