"""starts one process per node of the program graph: replay, learner, actor, actor"""
import argparse, os, subprocess, sys

p = argparse.ArgumentParser()
p.add_argument("--actors", type=int, default=2)
p.add_argument("--unroll", default="20")
a = p.parse_args()
nodes = ["replay", "learner"] + ["actor"] * a.actors
procs = []
for i, role in enumerate(nodes):
    env = dict(os.environ, RANK=str(i), WORLD_SIZE=str(len(nodes)), ROLE=role)
    procs.append(subprocess.Popen([sys.executable, "-u", "node.py", "--role", role, "--unroll", a.unroll], env=env))
for q in procs:
    q.wait()
