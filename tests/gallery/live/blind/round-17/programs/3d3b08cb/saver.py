"""Background checkpoint process: the trainer hands over a CPU state dict and keeps going."""
import json
import logging
import os
import socket
import time
from enum import Enum

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

log = logging.getLogger("saver")


class Control(Enum):
    TERMINATE = 0
    SAVE = 1


def find_free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write_shard(path, rank, state):
    os.makedirs(path, exist_ok=True)
    tmp = os.path.join(path, f".shard-{rank}.pt.tmp")
    torch.save(state, tmp)
    os.replace(tmp, os.path.join(path, f"shard-{rank}.pt"))


def saver_main(conn, rank, world_size, port):
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s saver{rank} %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    while True:
        op, payload = conn.recv()
        if op is Control.TERMINATE:
            break
        tic = time.time()
        write_shard(payload["path"], rank, payload["state"])
        dist.barrier()
        if rank == 0:
            with open(os.path.join(payload["path"], "manifest.json"), "w") as f:
                json.dump({"step": payload["step"], "world_size": world_size}, f)
            log.info("checkpoint for step %d complete in %.2fs", payload["step"], time.time() - tic)
    dist.destroy_process_group()


class AsyncSaver:
    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size
        self.process = None

    def _ensure_started(self):
        if self.process is not None:
            return
        ctx = mp.get_context("spawn")
        self.conn, child = ctx.Pipe()
        self.process = ctx.Process(
            target=saver_main, args=(child, self.rank, self.world_size, find_free_port()), daemon=True
        )
        self.process.start()

    def save(self, path, step, state):
        self._ensure_started()
        self.conn.send((Control.SAVE, {"path": path, "step": step, "state": state}))

    def close(self):
        if self.process is not None and self.process.is_alive():
            self.conn.send((Control.TERMINATE, None))
            self.process.join()
            self.process = None
