"""What changed from one look to the next, in one sentence for whoever watches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from trainprobe.collect.members import Member
from trainprobe.collect.thread_history import ThreadHistory
from trainprobe.model.ranks import fold_ranks
from trainprobe.stacks.frames import Frame
from trainprobe.stacks.places import user_frame
from trainprobe.stacks.progress import own_place

MOST_PLACES = 4


def moves_line(number: int, ranks: Iterable[ThreadHistory], ended: Collection[Member] = ()) -> str:
    """Say of look `number` which ranks stand where they stood in the look before, where the
    others are now, and who has ended.
    """
    over: list[int] = []
    still: list[int] = []
    now: dict[str, list[int]] = {}
    unseen: list[int] = []
    for each in ranks:
        rank = each.member.rank
        if rank is None:
            continue
        if each.member in ended:
            over.append(rank)
        elif len(each.stacks) < 2:
            unseen.append(rank)
        elif own_place(each.stacks[-1]) == own_place(each.stacks[-2]):
            still.append(rank)
        else:
            now.setdefault(where(each.stacks[-1]), []).append(rank)
    moved = [
        f"{rank_list(moved)} moved to {place}" for place, moved in list(now.items())[:MOST_PLACES]
    ]
    if len(now) > MOST_PLACES:
        moved.append(
            f"{sum(len(moved) for moved in list(now.values())[MOST_PLACES:])} others moved too"
        )
    stands = (
        [
            (
                f"{rank_list(still)} {'stands' if len(still) == 1 else 'stand'} where"
                f" {'it' if len(still) == 1 else 'they'} stood"
            )
        ]
        if still
        else []
    )
    hidden = [f"{rank_list(unseen)} could not be seen twice"] if unseen else []
    gone = [f"{rank_list(over)} {'has' if len(over) == 1 else 'have'} ended"] if over else []
    return (
        f"look {number}: {'; '.join([*gone, *moved, *stands, *hidden]) or 'no rank could be seen'}"
    )


def where(frames: Sequence[Frame]) -> str:
    """The user's own place, else the innermost frame."""
    frame = user_frame(frames) or (frames[-1] if frames else None)
    return frame.where if frame is not None else "a place without Python frames"


def rank_list(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {fold_ranks(ranks)}"
