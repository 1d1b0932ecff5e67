import multiprocessing as mp
import os
import socket
import tempfile

from trainer import train

NPROC = 3


def entry(rank, port, shared):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(NPROC), LOCAL_WORLD_SIZE=str(NPROC),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    train(shared)


def main():
    ctx = mp.get_context("spawn")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    shared = tempfile.mkdtemp(prefix="rounds-")
    procs = [ctx.Process(target=entry, args=(r, port, shared), name=f"rank{r}") for r in range(NPROC)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()


if __name__ == "__main__":
    main()
