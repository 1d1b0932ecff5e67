import os
import subprocess
import sys
import threading

n = int(sys.argv[1])


def pump(r, p):
    for line in p.stdout:
        print(f"r{r}| {line}", end="", flush=True)


ps = []
for r in range(n):
    p = subprocess.Popen([sys.executable, "-u", "train_dlrm.py"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=dict(os.environ, RANK=str(r), WORLD_SIZE=str(n), LOCAL_RANK=str(r)))
    threading.Thread(target=pump, args=(r, p), daemon=True).start()
    ps.append(p)
sys.exit(max(p.wait() for p in ps))
