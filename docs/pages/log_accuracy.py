"""The part of docs/accuracy.md about logs, from tests/gallery/logs/results.json."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gallery.live.calibration import bins, calibration_error
from tests.gallery.live.score import wilson
from tests.gallery.logs import score
from tests.gallery.logs.score import Row

INTRO = """## Logs alone

`make accuracy-logs` gives each case in `tests/gallery/logs/cases/` to `trainprobe explain`: logs recorded from real jobs on one machine
without a GPU (`python -m tests.gallery.logs.record`: torchrun with and without prefixes, `--tee` and `--log-dir`, mp.spawn, plain
processes, at several verbosity settings), and logs written by hand in the form that the software prints, where the machine could not
produce them (NCCL, GPUs, SLURM, Kubernetes, DeepSpeed, Megatron, Lightning, Ray). The truth stands apart, in `answers.yaml`.
A hash of the case's name, which says nothing of its content, puts each into one of two parts: *fit*, whose misses the rules were mended
for, and *report*, whose misses were not handed to those who wrote rules; only totals were. They stand below for everybody to read, so from
here on that part is spent: the next fair figure needs new cases.

- The same people chose the illnesses and wrote the rules, and the authors of the written cases knew the catalogue. The report part is no
  sample of what happens to people; it only shows how far rules made for one half carry to the other.
- Answers were corrected after the first scores, in both parts, where the log could not show what the case was made to show: two cases of the
  reporting part were given another or a second id, and where a file, the host or the code is at fault no rank is demanded any more.
- The recorded cases come from few programs and one version of PyTorch; several cases of one program are not independent.
- *Right* means that a right id stands first; where the catalogue makes two ids legitimate for one log both count (`also` in the answers).
  What counts ranks and verdict too is a row of its own. The intervals are Wilson's, as if all cases were independent.
- A log can show less than a live look: where it cannot tell two illnesses apart, the answer is what the log can tell.
- *Last line* and *first error* are simple rules with the tool's own knowledge: the last line that any signature knows or that ends a
  traceback, and the first line that looks like an error, each given to the tool alone, without what stands around it.

"""
FIRST_LOOKS = (
    (30, 27, 28),
    (30, 30, 30),
)  # cases, right in first place, among the first three; noted when they were written, before any rule was mended
# Logs as people paste them into bug reports, labelled from what the thread says before the tool was
# asked, each batch judged once before
# anything was mended for it: (families, logs, right in first place, among the first three), in the
# order in which they were tried.
OUTSIDE = (
    ("network, start-up, GPU, memory", 81, 79, 79),
    ("network, start-up, GPU, memory; the harder ones", 41, 32, 34),
    ("data, processes, software, model, collectives, plain exceptions, healthy", 90, 75, 76),
    ("network, start-up, GPU, memory", 34, 25, 25),
    ("data, processes, software, model, collectives, plain exceptions, healthy", 50, 43, 45),
    ("network, start-up, GPU, memory", 34, 30, 30),
    ("data, processes, software, model, collectives, plain exceptions, healthy", 35, 29, 29),
    ("network, start-up, GPU, memory; mostly usual wordings", 21, 21, 21),
)
OUTSIDE_INTRO = """### Logs from bug reports

The fairest number on this page for logs. Fragments of five to forty lines, out of public bug reports of many projects, torch 1.x to 2.x,
with what the thread made plain as the truth. They are not in this repository, since they are other people's. Each batch was labelled
first and judged once as the tool then was; afterwards misses were mended by general rules, so the next batch met a better tool.

- Search results are cut off: about twenty of the logs had a last line completed, and some thirty were typed in the known form of a message.
- Where a fragment leaves two causes open, both count. Some labels can be argued about.
- A cause that is not listed at all is the usual miss; a wrong one that is stated as sure is rarer, and was not counted apart.
"""
PARTS = (("fit", "fitting part"), ("report", "reporting part"))


def section() -> str:
    """Return the section, or nothing before there are results."""
    if not score.RESULTS.exists():
        return ""
    _, rows = score.load()
    parts = [[row for row in rows if row[0].part == name] for name, _ in PARTS]
    recorded = sum(answer.origin == "recorded" for answer, _ in rows)
    told = (
        f"{len(rows)} cases, {recorded} recorded and {len(rows) - recorded} written;"
        f" {len(parts[0])} in the fitting part, {len(parts[1])} in the reporting part."
    )
    looked = "; ".join(
        f"{first} of {of} right in first place, {three} among the first three"
        for of, first, three in FIRST_LOOKS
    )
    fresh = (
        "Two sets of cases, written when most rules stood, were judged once before anything was"
        f" mended for them: {looked}."
    )
    fresh += (
        " They are in the parts above by now; the same hand wrote them, in wordings of other"
        " versions and frameworks."
    )
    return "\n".join(
        [
            INTRO + told,
            "",
            *_figures(parts),
            fresh,
            "",
            *_outside(),
            *_calibration(parts),
            *_causes(rows),
            *_misses(rows),
        ]
    )


def _outside() -> list[str]:
    lines = [
        OUTSIDE_INTRO,
        "| batch | logs | right in first place | share | among the first three | share |",
        "|---|---|---|---|---|---|",
    ]
    all_of, all_first, all_three = (
        sum(row[1] for row in OUTSIDE),
        sum(row[2] for row in OUTSIDE),
        sum(row[3] for row in OUTSIDE),
    )
    for families, of, first, three in (*OUTSIDE, ("all", all_of, all_first, all_three)):
        lines.append(
            f"| {families} | {of} | {first} | {100 * first / of:.1f} % | {three} |"
            f" {100 * three / of:.1f} % |"
        )
    return [*lines, ""]


def _figures(parts: Sequence[Sequence[Row]]) -> list[str]:
    lines = [
        "| | reporting part | share | interval | fitting part | share |",
        "|---|---|---|---|---|---|",
    ]
    fit, report = score.figures(parts[0]), score.figures(parts[1])
    for name, (hits, of) in report.items():
        low, high = wilson(hits, of)
        there = f"{100 * hits / of:.1f} % | {100 * low:.1f} to {100 * high:.1f} %" if of else " | "
        mine, all_mine = fit[name]
        lines.append(
            f"| {name} | {hits} of {of} | {there} | {mine} of {all_mine} |"
            f" {f'{100 * mine / all_mine:.1f} %' if all_mine else ''} |"
        )
    for origin in ("recorded", "written"):
        kept = [[row for row in part if row[0].origin == origin] for part in parts]
        hits, mine = (sum(score.fits(*row) for row in part) for part in (kept[1], kept[0]))
        low, high = wilson(hits, len(kept[1]))
        share, my_share = 100 * hits / max(1, len(kept[1])), 100 * mine / max(1, len(kept[0]))
        between = f"{100 * low:.1f} to {100 * high:.1f} %"
        lines.append(
            f"| {origin} cases: right in first place | {hits} of {len(kept[1])} | {share:.1f} % |"
            f" {between} | {mine} of {len(kept[0])} | {my_share:.1f} % |"
        )
    return [*lines, ""]


def _named(rows: Sequence[Row]) -> list[tuple[float, bool]]:
    return [
        (float(said["causes"][0]["confidence"]), score.fits(answer, said))
        for answer, said in rows
        if said["causes"] and said["causes"][0]["named"]
    ]


def _calibration(parts: Sequence[Sequence[Row]]) -> list[str]:
    lines = [
        "### Is the confidence of a cause found in logs worth its number?",
        "",
        "| | named causes | calibration error | all first places | calibration error |",
    ]
    lines.append("|---|---|---|---|---|")
    for (_, name), rows in zip(PARTS, parts, strict=True):
        named, every = _named(rows), score.confidences(rows)
        lines.append(
            f"| {name} | {len(named)} | {calibration_error(named):.3f} | {len(every)} |"
            f" {calibration_error(every):.3f} |"
        )
    lines += [
        "",
        "Named causes of the reporting part, in about equally full bins:",
        "",
        "| answers | mean confidence | right | interval |",
        "|---|---|---|---|",
    ]
    for count, mean, right in bins(_named(parts[1])):
        low, high = wilson(right * count, count)
        lines.append(f"| {count} | {mean:.3f} | {right:.3f} | {low:.3f} to {high:.3f} |")
    return [*lines, ""]


def _causes(rows: Sequence[Row]) -> list[str]:
    lines = [
        "### By cause",
        "",
        "Both parts together; right in first place.",
        "",
        "| cause | right | of |",
        "|---|---|---|",
    ]
    return [
        *lines,
        *(f"| `{name}` | {hits} | {of} |" for name, (hits, of) in score.per_cause(rows).items()),
        "",
    ]


def _misses(rows: Sequence[Row]) -> list[str]:
    lines = [
        "### Every miss",
        "",
        "| case | part | origin | truth | said |",
        "|---|---|---|---|---|",
    ]
    for answer, said in rows:
        if not score.fits(answer, said):
            told = (
                ", ".join(f"`{one['id']}` {one['confidence']:.2f}" for one in said["causes"][:3])
                or said["verdict"]
            )
            lines.append(
                f"| {answer.case} | {answer.part} | {answer.origin} |"
                f" {', '.join(f'`{name}`' for name in score.accepted(answer))} | {told} |"
            )
    return [*lines, ""]
