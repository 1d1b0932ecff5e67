"""What the confidence of an answer is worth where only logs tell of a job.

Two numbers were fitted on the 187 answers with a cause that were given to six batches of strangers'
logs when each was judged first (tests/gallery/logs/fresh): below 0.9 such answers are right more
often than their shares say, above it less often. Fitted with one batch left out in turn, the
calibration error of all of them falls from 0.095 to 0.081; 0.085 with these numbers, rounded so
that what is not yet 0.8 stays below it. The order of causes, and whether one is named, stay as
they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainprobe.causes.component_told import is_the_programs
from trainprobe.causes.scene import Scene
from trainprobe.facts import LogJob

SLOPE, SHIFT = 0.55, 0.75  # of the log-odds
# Causes that stand where nothing else fits. Of six such answers two were right.
RESIDUAL = frozenset({"user-exception", "import-failure"})
RESIDUAL_MOST = 0.79


def calibrated(scene: Scene, first: str, shares: Sequence[float]) -> list[float]:
    """The shares of one group, of which the first leads by `first`, as their answers were found to
    be right in logs; unchanged where more than logs was looked at.
    """
    top = shares[0]
    if scene.live is not None or scene.one(LogJob) is None or not 0.0 < top < 1.0:
        return list(shares)
    odds = SLOPE * math.log(top / (1.0 - top)) + SHIFT
    worth = 1.0 / (1.0 + math.exp(-odds))
    if first in RESIDUAL and not is_the_programs(scene):
        worth = min(worth, RESIDUAL_MOST)
    rest = (1.0 - worth) / (1.0 - top)
    return [worth, *(share * rest for share in shares[1:])]
