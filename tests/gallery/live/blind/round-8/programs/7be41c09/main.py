import time

import torch
import torch.distributed as dist

from trainer import SaeTrainer, TrainConfig


def activation_stream(cfg, rank):
    gen = torch.Generator().manual_seed(100 + rank)
    basis = torch.randn(96, cfg.d_in, generator=torch.Generator().manual_seed(0))
    while True:
        out = {}
        for i in range(2):
            codes = torch.rand(cfg.batch_size, 96, generator=gen)
            codes = codes * (codes > 0.9)
            out[f"layers.{i}"] = codes @ basis + 0.01 * torch.randn(cfg.batch_size, cfg.d_in, generator=gen)
        time.sleep(0.02)
        yield out


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    cfg = TrainConfig()
    trainer = SaeTrainer(cfg, activation_stream(cfg, dist.get_rank()))
    trainer.log(f"training 2 coders on {dist.get_world_size()} ranks, width {cfg.width}, k {cfg.k}")
    trainer.fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
