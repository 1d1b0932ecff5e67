import multiprocessing as mp
import os
import shutil
import socket
import tempfile

from train_asr import train

WORLD = 3


def entry(rank, port, workdir):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_WORLD_SIZE=str(WORLD),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    train(workdir)


def main():
    ctx = mp.get_context("spawn")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    workdir = tempfile.mkdtemp(prefix="asr-buckets-")
    procs = [ctx.Process(target=entry, args=(r, port, workdir), name=f"trainer-{r}") for r in range(WORLD)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
    shutil.rmtree(workdir, ignore_errors=True)


if __name__ == "__main__":
    main()
