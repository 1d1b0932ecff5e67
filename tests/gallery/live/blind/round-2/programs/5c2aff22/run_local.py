import os
import random
import subprocess
import sys

n = int(sys.argv[1])
port = random.randint(20000, 40000)
children = []
for rank in range(n):
    env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n),
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    children.append(subprocess.Popen([sys.executable, "-u", *sys.argv[2:]], env=env))
sys.exit(max(c.wait() for c in children))
