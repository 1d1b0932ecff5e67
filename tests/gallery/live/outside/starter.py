"""Starts the ranks of one host by hand and waits for them one after the other, the last first."""

import os
import subprocess
import sys

world, port = int(sys.argv[1]), sys.argv[2]
words = os.environ["RUN_WORDS"].split()
last = int(words[words.index("--pick") + 1])
ranks = {}
for rank in range(world):
    environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1")
    ranks[rank] = subprocess.Popen([sys.executable, *sys.argv[3:]], env=environment)
for rank in sorted(ranks, key=lambda rank: rank == last):
    ranks[rank].wait()
