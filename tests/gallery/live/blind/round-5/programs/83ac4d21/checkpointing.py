import os, time
import torch, torch.distributed as dist
from bucketfs import BucketFile


class StagedCheckpointer:
    def __init__(self, stage, output):
        self.stage, self.output = stage, output
        os.makedirs(stage, exist_ok=True)

    def save(self, step, state):
        r = dist.get_rank()
        local = os.path.join(self.stage, f"step{step}-rank{r}.pt")
        torch.save(state, local)
        dist.barrier()
        if r == 0:
            t = time.time()
            for name in sorted(os.listdir(self.stage)):
                out = BucketFile(os.path.join(self.output, f"step{step}", name))
                with open(os.path.join(self.stage, name), "rb") as f:
                    out.write(f.read())
                out.close()
                os.remove(os.path.join(self.stage, name))
            print(f"promoted step {step} to {self.output} in {time.time() - t:.1f}s", flush=True)
        dist.barrier()
