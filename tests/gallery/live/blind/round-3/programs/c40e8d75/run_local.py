"""Stands in for the queue: runs the tasks of the array job on this machine."""
import argparse
import os
import subprocess
import sys

p = argparse.ArgumentParser()
p.add_argument("--tasks", type=int, required=True)
p.add_argument("cmd", nargs=argparse.REMAINDER)
a = p.parse_args()
cmd = [c for c in a.cmd if c != "--"]
os.makedirs("logs", exist_ok=True)
running = {}
for t in range(a.tasks):
    env = dict(os.environ, RANK=str(t), WORLD_SIZE=str(a.tasks))
    log = open(f"logs/task.{t + 1}.log", "w")
    running[t + 1] = subprocess.Popen([sys.executable, "-u", *cmd], env=env, stdout=log, stderr=subprocess.STDOUT)
for t, proc in running.items():
    code = proc.wait()
    print(f"task {t} finished with code {code}", flush=True)
