import sys
import time

import torch
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F

from model import Encoder


def main(path):
    torch.set_num_threads(1)
    model = Encoder()
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=path, no_dist=True)
    model.load_state_dict(state["model"])
    gen = torch.Generator().manual_seed(99)
    total, n = 0.0, 0
    with torch.no_grad():
        for _ in range(90):
            ids = torch.randint(0, 96, (4, 16), generator=gen)
            total += F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).item()
            n += 1
            time.sleep(0.4)
    print(f"[offline] {path.rsplit('/', 1)[-1]} loss {total / n:.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
