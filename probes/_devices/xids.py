"""What each XID asks for. Anchor: NVIDIA's catalogue with its immediate actions, as shipped in gpud
(read on 2026-08-22), and NVIDIA's XID documentation.

Tools disagree on some. 109: NVIDIA resets, gcm and the k8s device plugin ignore it. 31: sichek
calls it critical, NVIDIA restarts the program.
63 and 92: AzNHC and sichek fail, NVIDIA ignores them. 68: AzNHC fails on it, others ignore it, and
the catalogue has no action.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

SOURCE = "NVIDIA's XID catalogue as shipped in gpud, read 2026-08-22"
PROGRAM = "program"
IGNORE = "ignore"
LOOK = "look"
RESET = "reset"
REBOOT = "reboot"
HANDS = "hands"
UPDATE = "update"
_CODES: Dict[str, Sequence[int]] = {
    PROGRAM: (11, 13, 31, 32, 69, 94),  # a fault of the program that ran then; the GPU is fine
    IGNORE: (37, 38, 43, 44, 63, 92, 121, 137, 141, 157, 160, 161),
    # the first error, or the text, says more
    LOOK: (8, 45, 48, 61, 68, 74, 144, 145, 146, 147, 148, 149, 150, 154, 159, 171, 172),
    RESET: (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    REBOOT: (79, 151),
    HANDS: (54, 167),
    UPDATE: (78,),
}
ACTIONS: Dict[int, str] = {code: action for action, codes in _CODES.items() for code in codes}
FIX = {
    LOOK: "look at the XID before it, and at what the text says",
    RESET: "sudo nvidia-smi --gpu-reset -i GPU, with nothing running on it",
    REBOOT: "drain the node and reboot it",
    HANDS: "drain the node; check power, cables and the card",
    UPDATE: "update the driver",
}
BAD = (RESET, REBOOT, HANDS)
# From the beginning: the kernel also logs names of programs, which users choose.
_LINE = re.compile(r"(?:^|;)NVRM: Xid \(([^)]{1,80})\): (\d+)(?:,|\b)(.{0,160})")
# XID 154 tells the action itself.
_ACTION = re.compile(
    r"recovery action changed from \S.{0,40}? to (0x\w+)? ?\(?([A-Za-z ]{3,40})\)?", re.IGNORECASE
)


class Xid(NamedTuple):
    device: str
    code: int
    action: str
    text: str


def found(lines: Sequence[str]) -> List[Xid]:
    """All XIDs of a kernel log, in order. A code that the table lacks means: look it up."""
    every = []
    for line in lines:
        match = _LINE.search(line)
        if match:
            code = int(match[2])
            named = _ACTION.search(line) if code == 154 else None
            action = _action_of(named[2]) if named else ACTIONS.get(code, LOOK)
            every.append(Xid(match[1].split(",")[0], code, action, match[3].strip(" ,")))
    return every


def _action_of(text: str) -> str:
    lower = text.lower()
    return (
        IGNORE
        if "none" in lower
        else (
            REBOOT if "reboot" in lower else RESET if "reset" in lower or "drain" in lower else LOOK
        )
    )


def worst(every: Sequence[Xid]) -> Tuple[List[Xid], List[Xid]]:
    """(those that forbid a start, those that are worth a word), each code of each device once."""
    once = {(item.device, item.code): item for item in every}.values()
    return [item for item in once if item.action in BAD], [
        item for item in once if item.action in (LOOK, UPDATE)
    ]
