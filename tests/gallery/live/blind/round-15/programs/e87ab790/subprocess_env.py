import logging
import multiprocessing as mp
from dataclasses import dataclass
from enum import Enum
from queue import Empty
from typing import Any

from gridworld import VisualGrid

logger = logging.getLogger("envs")
ctx = mp.get_context("fork")


class Command(Enum):
    STEP = 1
    RESET = 2
    CLOSE = 3


@dataclass
class StepResponse:
    worker_id: int
    obs: Any
    reward: float
    done: bool


def worker(conn, step_queue, worker_id, seed):
    env = VisualGrid(seed)
    try:
        while True:
            cmd, payload = conn.recv()
            if cmd == Command.STEP:
                obs, reward, done = env.step(payload)
                if done:
                    obs = env.reset()
                step_queue.put(StepResponse(worker_id, obs, reward, done))
            elif cmd == Command.RESET:
                step_queue.put(StepResponse(worker_id, env.reset(), 0.0, False))
            elif cmd == Command.CLOSE:
                break
    except (KeyboardInterrupt, EOFError):
        logger.info("worker %d: environment stopping", worker_id)
    finally:
        step_queue.close()


class EnvWorker:
    def __init__(self, process, worker_id, conn):
        self.process = process
        self.worker_id = worker_id
        self.conn = conn
        self.waiting = False

    def send(self, cmd, payload=None):
        self.conn.send((cmd, payload))

    def close(self):
        try:
            self.conn.send((Command.CLOSE, None))
        except (BrokenPipeError, EOFError):
            pass
        self.process.join()


class SubprocessEnvManager:
    def __init__(self, n_env, seed):
        self.step_queue = ctx.Queue()
        self.workers = []
        for i in range(n_env):
            parent, child = ctx.Pipe()
            proc = ctx.Process(target=worker, args=(child, self.step_queue, i, seed + i), daemon=True)
            proc.start()
            self.workers.append(EnvWorker(proc, i, parent))

    def reset(self):
        for w in self.workers:
            w.send(Command.RESET)
        first = [self.step_queue.get() for _ in self.workers]
        return {r.worker_id: r.obs for r in first}

    def queue_step(self, worker_id, action):
        w = self.workers[worker_id]
        if not w.waiting:
            w.send(Command.STEP, action)
            w.waiting = True

    def get_steps(self):
        steps = [self.step_queue.get()]
        try:
            while True:
                steps.append(self.step_queue.get_nowait())
        except Empty:
            pass
        for s in steps:
            self.workers[s.worker_id].waiting = False
        return steps

    def close(self):
        for w in self.workers:
            w.close()
        self.step_queue.close()
        self.step_queue.join_thread()
