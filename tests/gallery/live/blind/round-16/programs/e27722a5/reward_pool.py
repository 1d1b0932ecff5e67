import concurrent.futures as cf
import multiprocessing as mp

import reward_fns


class RewardPool:
    """Scores sequences in chunks on a worker process; falls back to this process."""

    def __init__(self, workers=1, chunk=8, timeout=30.0):
        self.chunk = chunk
        self.timeout = timeout
        self.workers = workers
        self.pool = cf.ProcessPoolExecutor(workers, mp_context=mp.get_context("forkserver"))

    def submit(self, pairs):
        return [
            (pairs[i : i + self.chunk], self.pool.submit(reward_fns.score_chunk, pairs[i : i + self.chunk]))
            for i in range(0, len(pairs), self.chunk)
        ]

    def gather(self, jobs):
        out = []
        for chunk, future in jobs:
            waited = 0.0
            while True:
                try:
                    out.extend(future.result(timeout=0.25))
                    break
                except cf.TimeoutError:
                    waited += 0.25
                    if waited >= self.timeout:
                        future.cancel()
                        out.extend(reward_fns.score_chunk(chunk))
                        break
                except cf.process.BrokenProcessPool:
                    out.extend(reward_fns.score_chunk(chunk))
                    break
        return out

    def close(self):
        self.pool.shutdown(cancel_futures=True)
