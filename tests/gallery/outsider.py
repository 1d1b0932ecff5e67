"""Somebody outside the job: waits until a rank has trained for some steps, then sends it a signal.

python outsider.py --heartbeat DIR --rank 1 --step 20 --world 3 --signal STOP
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path


def send_when_training(
    heartbeat: Path,
    rank: int,
    step: int,
    number: signal.Signals,
    *,
    world: int = 0,
    limit_s: float = 60.0,
) -> int:
    """Send `number` to `rank` once its heartbeat says that it has reached `step` (in a world of
    `world` ranks, if given).

    Returns the process id, or 0 when the step was not reached within `limit_s`.
    """
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        try:
            seen = json.loads((heartbeat / f"rank{rank}.json").read_text())
        except FileNotFoundError:
            seen = {"step": -1, "world": 0, "pid": 0}
        if seen["step"] >= step and world in (0, seen["world"]):
            try:
                os.kill(seen["pid"], number)
            except ProcessLookupError:
                pass  # a heartbeat of a launch that is over already
            else:
                return int(seen["pid"])
        time.sleep(0.05)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heartbeat", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--step", type=int, default=20)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--signal", default="KILL")
    args = parser.parse_args()
    pid = send_when_training(
        args.heartbeat, args.rank, args.step, signal.Signals[f"SIG{args.signal}"], world=args.world
    )
    return 0 if pid else 1


if __name__ == "__main__":
    sys.exit(main())
