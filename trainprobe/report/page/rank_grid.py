"""One cell a rank, sorted by host, by state; and a table of the places where the ranks stand, which
tells the same without a mouse, a colour or a script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainprobe.model.diagnosis import RankRow, Report
from trainprobe.model.ranks import fold_ranks
from trainprobe.report.page.markup import Markup, data_island, element, text_of
from trainprobe.report.phrases import clean, duration

LARGE, HUGE = 96, 640
"""From so many ranks on cells hold no number, and are small."""
PLACES_CAP = 40
STATES = {
    "waiting": ("w", "waits"),
    "computing": ("c", "computes"),
    "spinning": ("s", "spins"),
    "blocked": ("b", "hangs in the kernel"),
    "stopped": ("t", "is stopped"),
    "exited": ("e", "has ended"),
    "crashed": ("x", "crashed"),
    "unseen": ("u", "was not seen"),
}
_DIGITS = re.compile(r"(\d+)")


def rank_grid_section(report: Report) -> Markup | None:
    """Return the grid and its table; None where no rank is known."""
    rows = report.world.ranks
    if not rows:
        return None
    culprits = {rank for cause in report.causes if cause.named for rank in cause.ranks} or {
        rank for suspect in report.suspects[:1] for rank in suspect.ranks
    }
    if len(culprits) >= len(rows):
        culprits = set()
    hosts: dict[str, list[RankRow]] = {}
    for row in rows:
        hosts.setdefault(row.host, []).append(row)
    ordered = sorted(hosts.items(), key=lambda item: _by_number(item[0]))
    alike = _alike(rows)
    size = "small" if len(rows) <= LARGE else "large" if len(rows) <= HUGE else "huge"
    number = f"{len(rows):,} {'rank' if len(rows) == 1 else 'ranks'}"
    named = sum(bool(host) for host in hosts)
    on = f" on {named:,} hosts" if named > 1 else ""
    return element(
        "section",
        element("h2", "Ranks", element("small", f"{number}{on}"), id="ranks-title"),
        _legend(rows, culprits),
        element(
            "div",
            *(_host(host, members, culprits, size) for host, members in ordered),
            class_=f"grid {size}{' one-host' if len(hosts) == 1 else ''}",
            id="grid",
            role="grid",
            aria_label=f"{number} by host and state; move with the arrow keys",
            aria_describedby="told",
        )
        if len(rows) > 1
        else None,
        element(
            "p",
            "Point at a cell, or move with the arrow keys, to see where the rank stands.",
            id="told",
            class_="told script-only",
            aria_live="polite",
        )
        if len(rows) > 1
        else None,
        _table(alike, culprits),
        _island(ordered, alike) if len(rows) > 1 else None,
        id="ranks",
        aria_labelledby="ranks-title",
    )


def _by_number(host: str) -> tuple[tuple[int, int, str], ...]:
    """`node9` before `node10`."""
    return tuple(
        (0, int(part[:18]), "") if part.isascii() and part.isdigit() else (1, 0, part)
        for part in _DIGITS.split(host)
        if part
    )


def _in_order(rows: Sequence[RankRow]) -> list[RankRow]:
    return sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.pid or 0))


def _alike(rows: Sequence[RankRow]) -> dict[tuple[str, str, str], list[RankRow]]:
    found: dict[tuple[str, str, str], list[RankRow]] = {}
    for row in rows:
        found.setdefault((row.state, row.where, row.waits_for), []).append(row)
    return found


def _host(host: str, rows: Sequence[RankRow], culprits: set[int], size: str) -> Markup:
    cells = []
    for row in _in_order(rows):
        letter = STATES.get(row.state, STATES["unseen"])[0]
        guilty = " q" if row.rank in culprits else ""
        shown = ("?" if row.rank is None else str(row.rank)) if size == "small" else ""
        # written by hand: there are thousands, and nothing in them is foreign
        cells.append(f'<i role="gridcell" class="{letter}{guilty}">{shown}</i>')
    name = host or "host not known"
    return Markup(
        f'<div role="row" class="host"><b role="rowheader">{text_of(name, 60)}</b>'
        f"<span>{''.join(cells)}</span></div>"
    )


def _legend(rows: Sequence[RankRow], culprits: set[int]) -> Markup:
    counted: dict[str, int] = {}
    for row in rows:
        counted[row.state] = counted.get(row.state, 0) + 1
    keys = [
        element(
            "span",
            element("i", class_=f"cell {STATES.get(state, STATES['unseen'])[0]}"),
            f" {state} ",
            element("b", f"{count:,}"),
            class_="key",
        )
        for state, count in sorted(counted.items(), key=lambda item: -item[1])
    ]
    if culprits:
        number = sum(row.rank in culprits for row in rows)
        keys.append(
            element(
                "span",
                element("i", class_="cell w q"),
                " named in the answer ",
                element("b", f"{number:,}"),
                class_="key",
            )
        )
    return element("p", *keys, class_="keys")


def _table(alike: dict[tuple[str, str, str], list[RankRow]], culprits: set[int]) -> Markup:
    def guilty(rows: Sequence[RankRow]) -> bool:
        return any(row.rank in culprits for row in rows)

    parted = [
        (key, part)
        for key, rows in alike.items()
        for blamed in (True, False)
        if (part := [row for row in rows if (row.rank in culprits) is blamed])
    ]
    ordered = sorted(parted, key=lambda item: (not guilty(item[1]), -len(item[1])))
    body = []
    for (state, where, waits_for), rows in ordered[:PLACES_CAP]:
        known = fold_ranks(row.rank for row in rows if row.rank is not None)
        unknown = [str(row.pid) for row in rows if row.rank is None and row.pid]
        pids = [str(row.pid) for row in rows if row.pid]
        who = known or "?"
        about = []
        if len(rows) > 1:
            about.append(f"{len(rows):,} ranks")
        elif pids:
            about.append(f"pid {pids[0]}")
        if unknown and known:
            about.append(f"and pids {', '.join(unknown[:6])}")
        hosts = {row.host for row in rows if row.host}
        about += [min(hosts)] if len(hosts) == 1 else []
        since = max((row.since_s for row in rows if row.since_s is not None), default=None)
        letter = STATES.get(state, STATES["unseen"])[0]
        body.append(
            element(
                "tr",
                element(
                    "th",
                    element("i", class_=f"cell {letter}{' q' if guilty(rows) else ''}"),
                    element("span", who, class_="set"),
                    element("small", " · ".join(about)) if about else None,
                    scope="row",
                ),
                element("td", state, element("small", duration(since)) if since else None),
                element(
                    "td",
                    element("code", where.strip() or "not known", class_="place"),
                    element("code", rows[0].source, class_="line") if rows[0].source else None,
                ),
                element("td", waits_for or "-"),
                class_="guilty" if guilty(rows) else None,
            )
        )
    more = len(ordered) - PLACES_CAP
    return element(
        "div",
        element(
            "table",
            element("caption", "Where the ranks stand"),
            element(
                "thead",
                element(
                    "tr",
                    *(
                        element("th", name, scope="col")
                        for name in ("Ranks", "State", "Where", "Waits for")
                    ),
                ),
            ),
            element("tbody", *body),
            class_="places",
        ),
        element("p", f"And {more} more places; all ranks are in the JSON.", class_="faint")
        if more > 0
        else None,
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label="Table of places; it can be scrolled",
    )


def _island(
    ordered: Sequence[tuple[str, Sequence[RankRow]]],
    alike: dict[tuple[str, str, str], list[RankRow]],
) -> Markup:
    """What the script says of a cell, as columns in the order of the cells."""
    place_of = {key: place for place, key in enumerate(alike)}
    rows = [row for _, members in ordered for row in _in_order(members)]
    return data_island(
        "rank-data",
        {
            "places": [
                [_short(state), _short(where), _short(waits_for), _short(members[0].source)]
                for (state, where, waits_for), members in alike.items()
            ],
            "hosts": [_short(host) for host, _ in ordered],
            "each": [len(members) for _, members in ordered],
            "rank": [row.rank for row in rows],
            "place": [place_of[row.state, row.where, row.waits_for] for row in rows],
            "pid": [row.pid for row in rows],
            "since": [None if row.since_s is None else round(row.since_s, 1) for row in rows],
        },
    )


def _short(text: str) -> str:
    return clean(text[:400])[:200]
