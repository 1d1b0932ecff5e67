"""mpirun for one node: starts n copies with OMPI_* variables and waits for them."""
import os
import subprocess
import sys


def main():
    n = int(sys.argv[sys.argv.index("-n") + 1])
    cmd = sys.argv[sys.argv.index("--") + 1:]
    procs = []
    for r in range(n):
        env = dict(os.environ, OMPI_COMM_WORLD_RANK=str(r), OMPI_COMM_WORLD_SIZE=str(n),
                   OMPI_COMM_WORLD_LOCAL_RANK=str(r))
        procs.append(subprocess.Popen(cmd, env=env))
    for p in procs:
        p.wait()


if __name__ == "__main__":
    main()
