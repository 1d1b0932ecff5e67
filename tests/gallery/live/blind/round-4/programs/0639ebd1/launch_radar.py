import argparse
import os
import subprocess
import sys

ap = argparse.ArgumentParser()
ap.add_argument("--ranks", type=int)
ap.add_argument("--trace-root")
a = ap.parse_args()
subprocess.run([sys.executable, "make_traces.py", a.trace_root], check=True)
children = []
for r in range(a.ranks):
    env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(a.ranks), MASTER_ADDR="127.0.0.1",
               MASTER_PORT=os.environ["ROVER_PORT"])
    out = open(f"radar.{r}.log", "w")
    children.append(subprocess.Popen([sys.executable, "train_radar.py", a.trace_root], env=env, stdout=out, stderr=out))
print("launched", [c.pid for c in children])
sys.exit(max(c.wait() for c in children))
