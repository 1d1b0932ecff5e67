"""Gradient averaging by hand; the rank that writes the metrics broadcasts them, and nobody else takes part."""

import argparse
import time

import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, metrics_rank: int, metrics_every: int) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.metrics_rank = metrics_rank
        self.metrics_every = metrics_every
        self.model = torch.nn.Linear(24, 8)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def average_gradients(self) -> None:
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.size

    def publish_metrics(self, loss: torch.Tensor) -> None:
        if self.rank == self.metrics_rank:
            summary = torch.stack([loss.detach(), loss.detach() ** 2])
            dist.broadcast(summary, src=self.rank)

    def step(self, index: int) -> None:
        inputs = torch.randn(12, 24)
        loss = self.model(inputs).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        if index > 0 and index % self.metrics_every == 0:
            self.publish_metrics(loss)
        self.average_gradients()
        self.optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=15)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    trainer = Trainer(options.culprit, options.when)
    for index in range(options.steps):
        trainer.step(index)
        time.sleep(0.01)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
