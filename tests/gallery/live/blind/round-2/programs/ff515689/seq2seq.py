import logging
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from cache import tokenized_part

torch.set_num_threads(1)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("filelock").setLevel(logging.WARNING)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(200, 24), nn.Linear(24, 16)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        rows = tokenized_part("scratch", epoch, rank)
        logging.info("epoch %d: %d rows ready", epoch, len(rows))
        for i in range(0, len(rows), 4):
            x = torch.tensor(rows[i : i + 4])
            loss = nn.functional.cross_entropy(model(x), x[:, 0] % 16)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.12)
        logging.info("epoch %d: loss %.4f", epoch, loss.item())


if __name__ == "__main__":
    main()
