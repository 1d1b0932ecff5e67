"""Names of nodes in SLURM's short form: `node[1-3,7],login1`."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Tuple

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})")


def folded(names: Iterable[str]) -> str:
    """Return the set of `names` in the short form that `--exclude`, `scontrol` and ClusterShell
    take.

    Leading zeros are kept. Only a number at the end is folded: SLURM takes nothing behind the
    bracket.
    """
    plain: List[str] = []
    numbered: Dict[Tuple[str, int], List[int]] = {}
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
        else:
            digits = found.group(2)  # node9 and node10 are one row, node09 and node9 are not
            numbered.setdefault(
                (found.group(1), len(digits) if digits.startswith("0") else 0), []
            ).append(int(digits))
    rows: Dict[Tuple[str, int], List[int]] = {}
    for (before, width), numbers in numbered.items():
        for number in numbers:  # 10 stands in the row of 08 and 09, which are written as wide
            wide = len(str(number))
            rows.setdefault(
                (before, width or (wide if (before, wide) in numbered else 0)), []
            ).append(number)
    return ",".join(
        [
            *(_row(before, width, sorted(numbers)) for (before, width), numbers in rows.items()),
            *plain,
        ]
    )


def _row(before: str, width: int, numbers: List[int]) -> str:
    if len(numbers) == 1:
        return f"{before}{numbers[0]:0{width}d}"
    spans: List[List[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    inside = ",".join(
        f"{low:0{width}d}" if low == high else f"{low:0{width}d}-{high:0{width}d}"
        for low, high in spans
    )
    return f"{before}[{inside}]"
