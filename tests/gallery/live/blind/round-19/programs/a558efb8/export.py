import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

PACK = """
import sys, gzip, shutil
src = sys.argv[1]
with open(src, 'rb') as f, gzip.open(src + '.gz', 'wb', 6) as g:
    shutil.copyfileobj(f, g)
print('packed', src)
"""


class Exporter:
    def __init__(self, folder):
        self.folder, self.child = folder, None

    def export(self, step, model):
        state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if dist.get_rank() == 0:
            path = os.path.join(self.folder, "ranker.pt")
            torch.save(state, path)
            if self.child is None or self.child.poll() is not None:
                self.child = subprocess.Popen(["nice", sys.executable, "-c", PACK, path], stdout=subprocess.DEVNULL)
        dist.barrier()
