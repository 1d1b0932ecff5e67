"""Starts ranks as torchrun does: each in a session of its own with RANK set. They ignore SIGTERM,
and each has a loader worker.

`launches_like_torchrun.py N [CODE]`: with CODE, rank 1 ends with it once all are there, and the
launcher collects it at once.
"""

import os
import signal
import subprocess
import sys
import time

from announce import announce

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
if os.environ.get("RANK"):
    rank = int(os.environ["RANK"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        announce(f"loader-{rank}")
        while True:
            time.sleep(60)
    announce(f"rank-{rank}")
    if rank == 1 and len(sys.argv) > 2:
        sys.stdin.buffer.read(1)
        sys.exit(int(sys.argv[2]))
    while True:
        time.sleep(60)

ranks = [
    subprocess.Popen(
        [sys.executable, *sys.argv],
        env={**os.environ, "RANK": str(rank)},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    for rank in range(int(sys.argv[1]))
]
announce("launcher")
if len(sys.argv) > 2:
    signal.sigwait({signal.SIGUSR1})
    pipe = ranks[1].stdin
    assert pipe is not None
    pipe.close()
    ranks[1].wait()
    announce("collected")
while True:
    time.sleep(60)
