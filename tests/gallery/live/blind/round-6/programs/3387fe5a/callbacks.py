import time

import torch
import torch.distributed as dist
from transformers import TrainerCallback


class SampleSums(TrainerCallback):
    """The main process solves sums one by one and all others wait for it."""

    def __init__(self, data, every, seconds=13):
        self.data, self.every, self.seconds = data, every, seconds

    @torch.no_grad()
    def _solve(self, model):
        t0, ok, n = time.time(), 0, 0
        while time.time() - t0 < self.seconds:
            ids = self.data[n % len(self.data)]["input_ids"]
            cut = (ids == self.data.CHARS.index("=")).nonzero()[0, 0] + 1
            seq = ids[:cut][None]
            while seq.size(1) < len(ids):
                nxt = model(input_ids=seq).logits[:, -1].argmax(-1, keepdim=True)
                seq = torch.cat([seq, nxt], 1)
            ok, n = ok + int((seq[0] == ids).all()), n + 1
        return ok, n

    def on_step_end(self, args, state, control, model=None, **kw):
        if state.global_step % self.every == 0:
            if state.is_world_process_zero:
                net = getattr(model, "module", model)
                net.eval()
                print("solved %d of %d" % self._solve(net), flush=True)
                net.train()
            dist.barrier()

    def on_log(self, args, state, control, logs=None, **kw):
        if state.is_world_process_zero and logs:
            print(state.global_step, {k: v for k, v in logs.items() if k in ("loss", "epoch")}, flush=True)
