"""The catalogue as `trainprobe causes` prints it, and the page of one cause, which docs/causes/
shows too.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from trainprobe.errors import UsageError
from trainprobe.report.cause_section import UNKNOWN
from trainprobe.report.lines import plain, span, wrapped
from trainprobe.report.phrases import clean

if TYPE_CHECKING:
    from trainprobe.causes import Planned
    from trainprobe.causes.cause import Cause

WIDTH = 100
FAMILY_TITLES = {
    "data_loading": "Data loading",
    "processes": "Fork, spawn, processes",
    "memory": "Memory",
    "collectives": "Collectives",
    "network": "Network and start-up",
    "gpu": "GPU health and driver",
    "software": "Software and jobs",
    "model": "Model",
}
UNKNOWN_PAGE = (
    "Nothing in the catalogue fits",
    (
        "The graph shows where the trouble is, and no cause of the catalogue explains it."
        " `unknown` takes part in every ranking with a fixed number of points, and comes first"
        " where no cause has clearly more.\n\nThe named ranks are right nevertheless: only the why"
        " is missing, not the where. The report names the look that would decide; the case holds"
        " the output and the stacks of every rank."
    ),
    "no cause has enough evidence to be named",
)
ADDED = "Added by plugins"
MODE_WORDS = {
    "hang": "ranks that hang",
    "crash": "ranks that crashed",
    "slow": "ranks that are slow",
    "check": "a check that failed",
}


def added_causes() -> tuple[tuple[Cause, ...], tuple[str, ...]]:
    """Return the causes of plugins, and one sentence for each plugin that did not load."""
    from trainprobe import causes, plugins

    added = plugins.causes(known={cause.id for cause in causes.built()})
    return added.found, added.trouble


def catalogue_text() -> str:
    """Return the list: the weighed causes by family, then those only known by name."""
    from trainprobe import causes

    built, planned = causes.built(), causes.planned()
    added, trouble = added_causes()
    ids = [*(cause.id for cause in (*built, *added)), *(cause.id for cause in planned)]
    names = max(map(len, ids)) + 2
    lines: list[str] = []
    for family in dict.fromkeys((*FAMILY_TITLES, *causes.FAMILIES)):
        rows = [(cause.id, cause.title) for cause in built if causes.family_of(cause.id) == family]
        lines += _section(FAMILY_TITLES.get(family, family), rows, names)
    lines += _section(ADDED, [(cause.id, cause.title) for cause in added], names)
    rows = [(cause.id, cause.means) for cause in planned]
    lines += _section("Known by name, not weighed yet", rows, names)
    counts = f"{len(built) + len(added)} causes are weighed, {len(planned)} are known by name"
    return "\n".join([*lines, f"{counts}. One page: trainprobe causes ID", *trouble]) + "\n"


def cause_text(cause_id: str) -> str:
    """Return the page of one cause. Raises UsageError, with a near name, where there is none of
    that id.
    """
    from trainprobe import causes

    if cause_id == UNKNOWN:
        return _page(UNKNOWN, *UNKNOWN_PAGE)
    added, _ = added_causes()
    everything: dict[str, Cause | Planned] = {cause.id: cause for cause in causes.planned()}
    everything |= {cause.id: cause for cause in (*added, *causes.built())}
    found = everything.get(cause_id)
    if found is None:
        near = difflib.get_close_matches(cause_id, sorted(everything), n=1)
        raise UsageError(
            f"There is no cause {cause_id!r}.",
            f"Did you mean {near[0]}?" if near else "The list: trainprobe causes",
        )
    if isinstance(found, causes.Planned):
        title = "Known by name; not weighed yet, so no ranking contains it."
        fix = ("usual fix", found.usual_fix)
        return _page(found.id, title, found.means, found.telling, fix)
    story = causes.page(found.id) or found.means
    return _page(found.id, found.title, story, found.telling, *weighed_rows(found))


def weighed_rows(cause: Cause) -> list[tuple[str, str]]:
    """Return what a page says beyond meaning and evidence, as pairs of label and sentence."""
    rows = [("weighed for", ", ".join(MODE_WORDS[mode] for mode in cause.modes))]
    if cause.refines:
        rows.append(("stands before", cause.refines))
    if cause.would_settle:
        rows.append(("would settle it", cause.would_settle))
    return rows


def _page(cause_id: str, title: str, means: str, telling: str, *rows: tuple[str, str]) -> str:
    lines = [clean(cause_id), ""]
    for says in dict.fromkeys((title, *means.split("\n\n"))):
        lines += [plain(line) for line in wrapped([span(says)], WIDTH, first="  ")]
        lines.append("")
    signs = (("told by", telling),) if telling else ()
    for label, says in (*signs, *rows):
        lines += [plain(line) for line in wrapped([span(says)], WIDTH, first=f"  {label:<17}")]
    return "\n".join(lines) + "\n"


def _section(title: str, rows: list[tuple[str, str]], names: int) -> list[str]:
    if not rows:
        return []
    lines = [title]
    for cause_id, says in rows:
        first = f"  {clean(cause_id):<{names}}"
        lines += [plain(line) for line in wrapped([span(says)], WIDTH, first=first)]
    return [*lines, ""]
