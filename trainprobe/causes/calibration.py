"""What the confidence of an answer is worth, by how often such answers were right on jobs and logs
of strangers.

Live jobs: two numbers were fitted on the 311 causes that were named, when each was judged first, on
blind rounds 6 to 11 and four sets of drawn jobs (tests/gallery/live). They were right in 96 %, and
their mean share was 0.90. With each round or set left out of the fit in turn, the calibration error
of all of them falls from 0.069 to 0.034; 0.036 with these numbers, which stay nearer to the shares.

Logs: four numbers were fitted on the 195 answers with a cause that were given to six batches of
strangers' logs (batch-3 to batch-8 of tests/gallery/logs/fresh) when each was judged first: two
where something failed, two where a job hangs or simply stops, of which less is sure. Answers are
right more often than their shares say, above all where something failed (129 of 134; 51 of 61
elsewhere). With each batch left out of the fit in turn, the calibration error of all of them is
0.038 (crashes 0.035, hangs 0.092). The order of causes, and whether one is named, stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainprobe.causes.component_told import is_the_programs
from trainprobe.causes.scene import Scene
from trainprobe.facts import LogJob
from trainprobe.waits.dump_hangs import only_dumps

# Of the log-odds: slope and shift.
OF_LIVE = (0.5, 1.5)
OF_FAILURES = (0.25, 2.5)
OF_WAITS = (0.6, 1.0)
# Causes that stand where nothing else fits. Of six such answers two were right.
RESIDUAL = frozenset({"user-exception", "import-failure"})
RESIDUAL_MOST = 0.79
# Named from logs alone it was the cause itself in 10 of 17 answers: a log shows which calls the
# ranks were in, and not by what they came apart.
CONDITIONAL = "rank-conditional-collective"
CONDITIONAL_MOST = 0.75


def calibrated(scene: Scene, first: str, shares: Sequence[float]) -> list[float]:
    """The shares of one group, of which the first leads by `first`, as their answers were found to
    be right; unchanged for what is neither a live job nor told by logs alone.
    """
    top = shares[0]
    if not 0.0 < top < 1.0:
        return list(shares)
    looked_at = scene.live is not None and not only_dumps(scene.live)
    if looked_at and scene.group.mode in ("hang", "slow"):
        slope, shift = OF_LIVE
    elif scene.live is None and scene.one(LogJob) is not None:
        failed = scene.first_failure is not None or scene.first_ending is not None
        slope, shift = OF_FAILURES if scene.group.mode == "crash" and failed else OF_WAITS
    else:
        return list(shares)
    odds = slope * math.log(top / (1.0 - top)) + shift
    worth = 1.0 / (1.0 + math.exp(-odds))
    if scene.live is None and first in RESIDUAL and not is_the_programs(scene):
        worth = min(worth, RESIDUAL_MOST)
    if scene.live is None and first == CONDITIONAL:
        worth = min(worth, CONDITIONAL_MOST)
    rest = (1.0 - worth) / (1.0 - top)
    return [worth, *(share * rest for share in shares[1:])]
