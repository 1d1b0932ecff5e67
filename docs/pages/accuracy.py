"""docs/accuracy.md, from the results of the live gallery (tests/gallery/live/results.json)."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from docs.pages import blind_jobs, families, fresh_logs, generated_jobs, log_accuracy, unseen
from tests.gallery.live import calibration, score
from tests.gallery.live.kinds import KINDS
from tests.gallery.live.replay import line_of
from trainprobe.causes.priors import load_priors

RESULTS = Path(__file__).resolve().parents[2] / "tests" / "gallery" / "live" / "results.json"
Result = dict[str, Any]
INTRO = """# How often trainprobe is right

`make accuracy` starts real training jobs on one machine without a GPU, lets each fall ill in a known way at a rank drawn by chance,
types `trainprobe attach`, and holds what it says against the truth. The programs are in `tests/gallery/live/programs/`: small models
that train on gloo, with DDP, FSDP, loader workers, file locks, transformers, accelerate and datasets, at 1 to 8 ranks, started by
torchrun, mp.spawn, accelerate or by hand. The tool sees each under a random name, without the docstring that says what is wrong with it,
and judges evidence in which no word of a command says which rank was drawn. `make accuracy-replay` judges the recorded evidence again
with the present rules in about a minute and writes this page: the looks are as old as the recording, the judgement is not.
"""
LIMITS = """## What the numbers of the gallery do not show

- **These are numbers of a development set.** The rules of the causes were written for these kinds of fault, and mended where runs of
  these same kinds were missed. Only the level of `unknown` and the temperature of the confidence were fitted on other programs than the
  one they are applied to. The withheld kinds have no cause in the catalogue, but what was wrongly said of them was mended too. How often
  it is right on faults that nobody here thought of, the section on kinds that nobody had planned for says, and what was said while the
  runs were recorded hints at.
- No GPU and no NCCL, one host, two cores, toy models, faults planted by the people who wrote the catalogue.
- The runs of one kind are one program at other sizes, ranks, seeds, launchers and forms. They are not independent, so two intervals
  stand in each row: Wilson's over runs, as if they were, and over kinds, as if all runs of a kind told no more than one of them.
- The kinds stand in equal numbers, not as often as they happen to people. A job that did not fall ill as planned was started again and is not counted.
- Nothing here says how the share falls as evidence is taken away (stacks alone, missing ranks), beyond the looks with and without `--deep`.

*Right* means that the cause, its ranks and the verdict are all right in first place. A *decoy* has an old, unrelated error in
the log of a healthy rank, more ill ranks than healthy ones, or two faults at once. The cause of a *withheld* kind is not in the
catalogue, and the right answer is `unknown` with the right ranks.

## In short

"""
TABLE = "| | runs | share | interval, over runs | interval, over kinds |\n|---|---|---|---|---|"


def pages() -> Iterator[tuple[str, str]]:
    """Give the page, or nothing before there are results."""
    if not RESULTS.exists():
        return
    results: list[Result] = json.loads(RESULTS.read_text(encoding="utf-8"))
    if results:
        parts = [
            INTRO,
            blind_jobs.section(),
            generated_jobs.section(),
            fresh_logs.section(),
            LIMITS + _headline(results),
            unseen.section(),
            _timing(results),
            families.section(),
            _calibration(results),
            _baselines(results),
        ]
        parts += [_splits(results), _kinds(results), _misses(results), log_accuracy.section()]
        yield "accuracy.md", "\n".join(part for part in parts if part)


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def _row(name: str, results: Sequence[Result], test: Callable[[score.Result], bool]) -> str:
    hits, of = score.share(results, test)
    if not of:
        return f"| {name} | 0 of 0 | | | |"
    return (
        f"| {name} | {hits} of {of} | {100 * hits / of:.1f} % | {_percent(*score.wilson(hits, of))}"
        f" | {_percent(*score.by_kind(results, test))} |"
    )


def _right(result: score.Result) -> bool:
    return bool(result["outcome"] == "right")


def _tier(results: Sequence[Result], tier: str) -> list[Result]:
    return [result for result in results if result["tier"] == tier]


def _headline(results: Sequence[Result]) -> str:
    broken, healthy, withheld = (_tier(results, tier) for tier in ("broken", "healthy", "withheld"))
    decoys, deep, ill = (
        [result for result in broken if result["decoy"]],
        [result for result in broken if "deep" in result],
        [*broken, *withheld],
    )
    rows = [
        TABLE,
        _row("decoys: right in first place", decoys, _right),
        _row("all broken runs: right in first place", broken, _right),
        _row(
            "cause and ranks right among the first three",
            broken,
            lambda result: result["outcome"] in ("right", "top3"),
        ),
        _row(
            "cause right in first place, whatever the ranks",
            broken,
            lambda result: bool(result["causes"]) and score.fit(result["causes"][0], result)[0],
        ),
        _row(
            "ranks right in first place, whatever the cause",
            broken,
            lambda result: bool(result["causes"]) and score.fit(result["causes"][0], result)[1],
        ),
        _row(
            "broken runs taken for healthy", broken, lambda result: result["verdict"] == "healthy"
        ),
        _row("withheld kinds: `unknown` with the right ranks", withheld, _right),
        _row("healthy runs: false alarms", healthy, lambda result: result["outcome"] == "alarm"),
        _row("healthy runs called healthy", healthy, _right),
        _row(
            "ill runs: an innocent rank is blamed with a confidence of 0.8 or more",
            ill,
            score.blames_the_innocent,
        ),
        _row(
            "ill runs: a wrong cause or rank is named with a confidence of 0.8 or more",
            ill,
            score.wrong_and_sure,
        ),
        _row("runs looked at with `--deep` too: right without it", deep, _right),
        _row(
            "the same runs, with `--deep`",
            deep,
            lambda result: result["deep"]["outcome"] == "right",
        ),
    ]
    before = [result for result in results if "then" in result]
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in broken:
        groups[score.kind_of(result)].append(result)
    clean = sum(all(map(_right, rows_of)) for rows_of in groups.values())
    kinds = {
        tier: len({score.kind_of(result) for result in _tier(results, tier)})
        for tier in ("broken", "withheld", "healthy")
    }
    told = (
        f"{len(results)} runs of {kinds['broken']} broken, {kinds['withheld']} withheld and"
        f" {kinds['healthy']} healthy kinds."
    )
    failed = sum("crash" in result for result in results)
    rows += (
        [f"| runs in which the tool itself failed | {failed} of {len(results)} | | | |"]
        if failed
        else []
    )
    return "\n".join(
        [
            *rows,
            "",
            f"{told} Of the broken kinds {clean} have every run right.",
            "",
            *_before(before),
        ]
    )


def _before(results: Sequence[Result]) -> list[str]:
    """What was said when the runs were recorded: the nearest thing here to a test on unseen
    runs.
    """
    if not results:
        return []
    told = (
        "The same runs as `attach` judged them while they were recorded, with the rules of that"
        " hour: made after earlier runs of these kinds, but"
    )
    rows = [
        (
            f"{told} not yet mended for the misses among these. It is the nearest thing here to"
            " unseen runs, and of an earlier version."
        ),
        "",
        TABLE,
    ]
    broken, withheld, healthy = (_tier(results, tier) for tier in ("broken", "withheld", "healthy"))
    rows.append(
        _row(
            "when recorded: decoys right in first place",
            [result for result in broken if result["decoy"]],
            lambda result: result["then"] == "right",
        )
    )
    rows.append(
        _row(
            "when recorded: all broken runs right in first place",
            broken,
            lambda result: result["then"] == "right",
        )
    )
    rows.append(
        _row(
            "when recorded: withheld kinds right",
            withheld,
            lambda result: result["then"] == "right",
        )
    )
    rows.append(
        _row(
            "when recorded: false alarms on healthy runs",
            healthy,
            lambda result: result["then"] == "alarm",
        )
    )
    return [*rows, ""]


def _timing(results: Sequence[Result]) -> str:
    def said(seconds: list[float]) -> str:
        kept = sorted(seconds)
        return (
            f"median {statistics.median(kept):.1f} s, a twentieth took"
            f" {kept[int(0.95 * len(kept))]:.1f} s or more"
        )

    plain = [
        float(result["attach_s"]) for result in results if not KINDS[score.kind_of(result)].words
    ]
    deep = [float(result["deep"]["attach_s"]) for result in results if "deep" in result]
    lines = [f"- `attach`: {said(plain)} ({len(plain)} runs)."] if plain else []
    lines += [f"- `attach --deep`: {said(deep)} ({len(deep)} runs)."] if deep else []
    why = (
        "Up to three jobs at a time trained, waited or started on the two cores, so this is no"
        " measure of the tool alone; `make bench` is."
    )
    return "\n".join(["From command to report:", "", *lines, "", why, ""])


def _calibration(results: Sequence[Result]) -> str:
    placed = calibration.left_out(results)
    if not placed:
        return ""
    priors = load_priors()
    shipped = [
        calibration.at(judged.result, priors.unknown, priors.temperature) for judged in placed
    ]
    level, temperature = calibration.fitted([judged.result for judged in placed])
    ours, prior = (
        statistics.fmean(judged.brier for judged in placed),
        statistics.fmean(judged.brier_of_priors for judged in placed),
    )
    low, high = calibration.resampled(placed, _skill)
    named = _pairs(placed)
    lines = ["## Is the confidence worth its number?", "", _kept_apart(placed), ""]
    lines += [
        (
            "| expected calibration error, adaptive bins | named causes | interval, kinds drawn"
            " again | all ill runs |"
        ),
        "|---|---|---|---|",
    ]
    for name, rows in (
        ("fitted on the other programs", placed),
        (f"as shipped: unknown {priors.unknown:g}, temperature {priors.temperature:g}", shipped),
    ):
        spread = "{:.3f} to {:.3f}".format(
            *calibration.resampled(rows, lambda drawn: calibration.calibration_error(_pairs(drawn)))
        )
        whole = calibration.calibration_error((judged.confidence, judged.right) for judged in rows)
        lines.append(
            f"| {name} | {calibration.calibration_error(_pairs(rows)):.3f} | {spread} |"
            f" {whole:.3f} |"
        )
    edge = (
        " It stands at the edge of what is tried: where nearly all runs are right, the fit knows no"
        " end of confidence."
        if temperature == min(calibration.TEMPERATURES)
        else ""
    )
    lines += [
        "",
        f"- Fitted on all programs together: unknown {level:g}, temperature {temperature:g}.{edge}",
    ]
    lines.append(
        f"- Brier score over all hypotheses: {ours:.3f}; of the priors alone, told the ranks:"
        f" {prior:.3f}; skill {1 - ours / prior:.2f} ({low:.2f} to {high:.2f})."
    )
    lines.append(_constant(named))
    lines += [
        "",
        "Reliability of the named causes, fitted on the other programs:",
        "",
        "| runs | mean confidence | right |",
        "|---|---|---|",
    ]
    lines += [
        f"| {count} | {mean:.3f} | {right:.3f} |" for count, mean, right in calibration.bins(named)
    ]
    lines += [
        "",
        (
            "Risk against coverage: where only the most confident answers count, this part of them"
            " is wrong. The last row is all that were named."
        ),
        "",
    ]
    lines += ["| ill runs covered | wrong |", "|---|---|"]
    shown = {
        f"{100 * covered:.0f} %": f"{100 * risk:.1f} %"
        for covered, risk in calibration.risk_coverage(placed)
    }
    lines += [f"| {covered} | {risk} |" for covered, risk in shown.items()]
    return "\n".join([*lines, ""])


def _pairs(placed: Sequence[calibration.Judged]) -> list[calibration.Pair]:
    return [(judged.confidence, judged.right) for judged in placed if judged.named]


def _skill(placed: Sequence[calibration.Judged]) -> float:
    return 1 - sum(judged.brier for judged in placed) / sum(
        judged.brier_of_priors for judged in placed
    )


def _kept_apart(placed: Sequence[calibration.Judged]) -> str:
    unknown, silent = (
        [judged for judged in placed if judged.id == "unknown"],
        sum(judged.id == "none" for judged in placed),
    )
    right = sum(judged.right for judged in unknown)
    return (
        f"Of {len(placed)} ill runs a cause is named in {len(placed) - len(unknown) - silent},"
        f" `unknown` stands first in {len(unknown)} ({right} of them rightly), and of {silent}"
        " nothing is said. An answer that is withheld with a low confidence is calibrated too"
        " easily, so the named causes stand alone as well."
    )


def _constant(named: Sequence[calibration.Pair]) -> str:
    """Whether the number tells right from wrong at all: a constant one would be calibrated as
    well.
    """
    if not named:
        return ""
    base = sum(right for _, right in named) / len(named)
    mine = statistics.fmean((part - right) ** 2 for part, right in named)
    split = calibration.separation(named)
    told = f"{split:.2f}" if split is not None else "not to be told, all being right"
    return (
        f"- Is it more than a constant? Squared error of `this is right` {mine:.4f}; of the"
        f" constant {base:.3f}, {base * (1 - base):.4f}. A right answer has the higher confidence"
        f" than a wrong one in this share of pairs: {told} ({sum(not right for _, right in named)}"
        " wrong ones)."
    )


def _baselines(results: Sequence[Result]) -> str:
    broken = _tier(results, "broken")
    lines = [
        "## Next to simple rules",
        "",
        (
            "They name ranks only, so only ranks are compared, on the runs where the rule had"
            " something to go by."
        ),
    ]
    lines += [
        (
            "*Nobody* is no answer; where no rank is to blame, naming none is right. The last"
            " columns pair the runs: right here and not"
        ),
        "",
    ]
    lines[-2] += " there, and the chance of so uneven a split (McNemar, exact)."
    lines += [
        (
            "| rule | runs | right | wrong | nobody | interval | trainprobe right | only trainprobe"
            " | only the rule | chance |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rules = sorted({name for result in broken for name in result["guesses"]})
    for name in rules:
        known = [
            (result, said)
            for result in broken
            if (said := score.rule_outcome(result, name)) is not None
        ]
        count = {
            said: sum(one == said for _, one in known) for said in ("right", "wrong", "nobody")
        }
        ours = [
            bool(result["causes"]) and score.fit(result["causes"][0], result)[1]
            for result, _ in known
        ]
        more = sum(mine and said != "right" for mine, (_, said) in zip(ours, known, strict=True))
        less = sum(
            not mine and said == "right" for mine, (_, said) in zip(ours, known, strict=True)
        )
        part = _percent(*score.wilson(count["right"], len(known)))
        cells = [
            name,
            len(known),
            count["right"],
            count["wrong"],
            count["nobody"],
            part,
            sum(ours),
            more,
            less,
            f"{score.sign_test(more, less):.2g}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, "", *_analyzer(broken)])


def _analyzer(broken: Sequence[Result]) -> list[str]:
    asked = [result for result in broken if "analyzer" in result]
    if not asked:
        return [
            (
                "`torchfrtrace`, PyTorch's own analyzer of flight-recorder dumps, was not run on"
                " these recordings."
            ),
            "",
        ]
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for result in asked:
        for name, answer in result["analyzer"].items():
            counts[
                name,
                (
                    answer["says"].split(":")[0]
                    if answer["outcome"] == "crashed"
                    else answer["outcome"]
                ),
            ] += 1
    lines = [
        (
            "`torchfrtrace` is PyTorch's own analyzer of flight-recorder dumps. It was run on"
            f" {len(asked)} of the {len(broken)} runs, on what `--deep` had the ranks write;"
        )
    ]
    lines += [
        (
            "gloo's dumps name their groups in a way that it does not read, so it was asked again"
            " with the groups named for it. What it answered:"
        ),
        "",
    ]
    lines += [
        "| | answer | runs |",
        "|---|---|---|",
        *(f"| {name} | {said} | {count} |" for (name, said), count in sorted(counts.items())),
    ]
    return [*lines, ""]


def _splits(results: Sequence[Result]) -> str:
    broken = _tier(results, "broken")
    lines = ["## By size, form and launch", "", TABLE]
    for what in ("world", "form", "launch"):
        groups = {
            value: [result for result in broken if result["plan"][what] == value]
            for value in sorted({result["plan"][what] for result in broken})
        }
        lines += [_row(f"{what} {value}", rows, _right) for value, rows in groups.items()]
    return "\n".join([*lines, ""])


def _kinds(results: Sequence[Result]) -> str:
    rows: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        rows[score.kind_of(result)].append(result)
    lines = [
        "## By kind",
        "",
        "| kind | truth | runs | right in first place | in the first three |",
        "|---|---|---|---|---|",
    ]
    for name in (name for name in KINDS if name in rows):
        right = sum(map(_right, rows[name]))
        near = sum(result["outcome"] in ("right", "top3") for result in rows[name])
        kind = KINDS[name]
        truth = kind.cause if kind.tier != "healthy" else "healthy"
        lines.append(
            f"| {name} | {truth}{' (withheld)' if kind.tier == 'withheld' else ''} |"
            f" {len(rows[name])} | {right} | {near} |"
        )
    return "\n".join([*lines, ""])


def _misses(results: Sequence[Result]) -> str:
    lines = [
        "## The misses",
        "",
        "Each run that is not right in first place: what it should have said, what it said.",
        "",
    ]
    missed = [f"- {line_of(result)}" for result in results if result["outcome"] != "right"]
    return "\n".join([*lines, *(missed or ["None."]), ""])
