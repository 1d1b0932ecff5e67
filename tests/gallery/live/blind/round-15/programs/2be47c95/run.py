import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=2)
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ft_")
    port_file = os.path.join(work, "port")
    server = subprocess.Popen([sys.executable, "shard_server.py", "--port-file", port_file])
    try:
        while not os.path.exists(port_file):
            time.sleep(0.2)
        url = f"http://127.0.0.1:{open(port_file).read()}"
        train = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--standalone",
                                  "--nproc-per-node", str(args.nproc), "finetune.py", "--rows", url,
                                  "--output-dir", os.path.join(work, "out")])
        while train.poll() is None:
            time.sleep(5)
            free = shutil.disk_usage(work).free
            if free < 1 << 28:
                print(f"low disk space: {free >> 20} MB", flush=True)
        return train.returncode
    finally:
        server.terminate()


if __name__ == "__main__":
    sys.exit(main())
