"""Tables of positions: did an index pass the end of one, rather than of labels or tokens?"""

from __future__ import annotations

import re

from trainprobe.causes.scene import user_frame
from trainprobe.causes.statements import text_of
from trainprobe.facts import RankException
from trainprobe.stacks.frames import Frame

POSITIONS = re.compile(r"(?i)posit|\bpos_|_pos\b|\bwpe\b|token_type")
ROTATED = re.compile(
    r"(?i)posit|\bpos_|_pos\b|\bwpe\b|token_type_ids|rotary|\bcos\b|relative_bias|block_size"
)
OUT_OF_RANGE = "index out of range in self"  # the CPU's embedding
# One table of positions of a known length beside one more token than it has.
SIZES = re.compile(
    r"(?:size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\)|expanded"
    r" size of the tensor \((?P<c>\d+)\) must match the existing size \((?P<d>\d+)\)) at"
    r" non-singleton dimension [12]"
)
TABLES = frozenset(
    {77, 197, 256, 257, 384, 512, 514, 577, 768, 1024, 1026, 2048, 4096, 4098, 8192, 16384, 32768}
)
INNERMOST = 4


def positions_line(origin: RankException | None) -> Frame | None:
    """The line that looks up positions, where the exception came out of one.

    It is sought in the innermost frames and in the caller's own: the call of a module alone puts
    four frames of torch below the caller.
    """
    if origin is None:
        return None
    caller = user_frame(origin.frames)
    frames = (*origin.frames[-INNERMOST:], *([caller] if caller is not None else []))
    return next((frame for frame in frames if POSITIONS.search(f"{frame.name} {frame.text}")), None)


def passed_positions(origin: RankException | None) -> Frame | None:
    """The line that looked up a position beyond the end of its table, on the CPU."""
    return (
        positions_line(origin) if origin is not None and OUT_OF_RANGE in text_of(origin) else None
    )


def too_long(origin: RankException | None) -> tuple[int, int] | None:
    """The length that came and the length that there is, at a table of positions."""
    match = SIZES.search(text_of(origin)) if origin is not None else None
    if origin is None or match is None:
        return None
    first, second = (int(number) for number in match.groups() if number)
    at_positions = any(ROTATED.search(f"{frame.text} {frame.name}") for frame in origin.frames[-3:])
    if min(first, second) > 1 and (at_positions or min(first, second) in TABLES):
        return (max(first, second), min(first, second))
    return None
