"""The merged stacks as a list that opens and closes: each frame with the set of its ranks. The
script draws the same as an icicle, in which a frame is as wide as its share of the ranks; without
it the list stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainprobe.model.diagnosis import Report, StackBranch
from trainprobe.model.ranks import unfold_ranks
from trainprobe.report.page.markup import Markup, element

BRANCHES_CAP = 600
_DEEPEST = 60


def stack_tree_section(report: Report) -> Markup | None:
    """Return the tree; None where no stack was read."""
    tree = report.stacks.tree
    if not tree:
        return None
    culprits = {rank for cause in report.causes if cause.named for rank in cause.ranks}
    whole = sum(len(_ranks(branch.ranks)) for branch in tree) or 1
    if len(culprits) >= whole:
        culprits = set()
    left = [BRANCHES_CAP]
    branches = _branches(tree, whole, culprits, left, 0)
    return element(
        "section",
        element(
            "h2", "Stacks", element("small", "merged, outermost frame first"), id="stacks-title"
        ),
        element(
            "p",
            element(
                "label",
                "Search frames and ranks ",
                element(
                    "input",
                    type="search",
                    id="stack-search",
                    autocomplete="off",
                    spellcheck="false",
                    placeholder="backward, train.py:30, 777",
                ),
            ),
            element("output", id="stack-found", aria_live="polite"),
            element("button", "As a list", type="button", id="stack-view"),
            element("button", "Open all", type="button", data_open="stacks"),
            element("button", "Close all", type="button", data_close="stacks"),
            class_="tools script-only",
        ),
        element(
            "div",
            element(
                "div",
                element("div", id="icicle", role="tree", aria_label="Stacks"),
                class_="room",  # it scrolls with the focus, which is always within
            ),
            element("p", id="icicle-told", class_="told"),
            id="stack-icicle",
            class_="script-only",
        ),
        element("ul", *branches, class_="tree", id="stack-tree"),
        element("p", "The other branches are in the JSON.", class_="faint")
        if left[0] <= 0
        else None,
        id="stacks",
        aria_labelledby="stacks-title",
    )


def _ranks(folded: str) -> tuple[int, ...]:
    try:
        return unfold_ranks(folded)
    except ValueError:
        return ()


def _branches(
    branches: Sequence[StackBranch], whole: int, culprits: set[int], left: list[int], depth: int
) -> list[Markup]:
    """The branches, those of the culprits first; `left` counts down how many may still be shown."""
    found = []
    split = len(branches) > 1
    ordered = sorted(
        branches, key=lambda one: culprits.isdisjoint(_ranks(one.ranks)) if split else 0
    )
    for branch in ordered:
        left[0] -= 1
        if left[0] < 0 or depth > _DEEPEST:
            break
        frames, last = [branch.frame], branch
        while len(last.next) == 1 and last.next[0].ranks == branch.ranks:
            last = last.next[0]
            frames.append(last.frame)
        ranks = _ranks(branch.ranks)
        guilty = split and bool(culprits) and set(ranks) <= culprits
        head = [
            _share(len(ranks), whole),
            element("span", branch.ranks or "?", class_="set"),
            element("small", f"{len(ranks):,} of {whole:,}") if whole > 1 else None,
            element("small", "▲ culprit", class_="mark") if guilty else None,
        ]
        lines = element(
            "span",
            *(
                element("code", frame, class_="frame leaf" if place == len(frames) - 1 else "frame")
                for place, frame in enumerate(frames)
            ),
            class_="frames",
        )
        inner = _branches(last.next, whole, culprits, left, depth + 1)
        body = (
            element(
                "details",
                element("summary", *head, lines),
                element("ul", *inner),
                open=True,
            )
            if inner
            else element("div", *head, lines, class_="end")
        )
        found.append(element("li", body, class_="guilty" if guilty else None))
    return found


def _share(count: int, whole: int) -> Markup:
    """A bar as long as the share of the ranks; one rank of thousands still shows."""
    width = max(2.0, 64 * count / whole)
    return element(
        "svg",
        element("rect", width="64", height="8", rx="2", class_="room"),
        element("rect", width=f"{width:.1f}", height="8", rx="2", class_="part"),
        width="64",
        height="8",
        class_="share",
        aria_hidden="true",
    )
