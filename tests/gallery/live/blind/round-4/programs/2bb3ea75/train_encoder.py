import argparse
import json

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from data import MaskedFrames
from encoder import SpeechEncoder
from logging_utils import get_logger


def set_seed(seed):
    torch.manual_seed(seed + dist.get_rank())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config")
    cfg = json.load(open(ap.parse_args().config))
    dist.init_process_group("gloo")
    log = get_logger(dist.get_rank())
    log.info("config %s", cfg)

    torch.manual_seed(cfg["seed"])
    model = SpeechEncoder(cfg["dim"], cfg["layers"], cfg["heads"], cfg["layerdrop"])
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: min(1.0, (u + 1) / cfg["warmup_updates"]))

    set_seed(cfg["seed"])
    data = MaskedFrames(cfg["batch"], cfg["frames"], cfg["dim"])
    model.train()
    for update in range(cfg["max_updates"]):
        model.set_num_updates(update)
        feats, target, mask = data.next()
        loss = ((model(feats) - target)[mask] ** 2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        sched.step()
        if update % cfg["log_interval"] == 0:
            log.info("update %d | loss %.4f | lr %.2e", update, loss.item(), sched.get_last_lr()[0])


if __name__ == "__main__":
    main()
