import subprocess
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class ModelBenchmark:
    """Runs training steps for a number of seconds and reports the step times of the rank."""

    def __init__(self, name, duration, warmup):
        self.name, self.duration, self.warmup = name, duration, warmup
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.mesh = init_device_mesh("cpu", (2, self.world // 2), mesh_dim_names=("dp", "tp"))
        self.durations, self.started = [], None

    def build(self):
        raise NotImplementedError

    def batch(self):
        raise NotImplementedError

    def preprocess(self):
        self.build()
        dist.barrier()
        if self.rank == 0:
            self.environment_report()
        self.started = time.time()

    def environment_report(self):
        lines = torch.__config__.show().splitlines()[:3] + torch.__config__.parallel_info().splitlines()[:2]
        for command in (["uname", "-sr"], ["df", "-h", "/tmp"], ["sh", "-c", "nproc; sleep 0.8; uptime"]):
            lines += subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        print(f"{self.name}: mesh {tuple(self.mesh.shape)}")
        print("\n".join("  " + line.strip() for line in lines), flush=True)

    def is_finished(self, now):
        return now - self.started >= self.duration

    def train_step(self):
        began = time.time()
        loss = self.loss(self.batch())
        self.opt.zero_grad()
        loss.backward()
        group = self.mesh.get_group("dp")
        for p in self.model.parameters():
            grad = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
            dist.all_reduce(grad, group=group)
        self.opt.step()
        time.sleep(0.12)
        self.durations.append(time.time() - began)
        return loss

    def benchmark(self):
        for _ in range(self.warmup):
            self.train_step()
        self.durations.clear()
        step = 0
        while True:
            self.train_step()
            step += 1
            if self.rank == 0 and step % 10 == 0:
                print(f"{self.name} step {step} {self.durations[-1] * 1000:.1f} ms", flush=True)
            if self.is_finished(time.time()):
                break
        return self.summary()

    def summary(self):
        mine = {"rank": self.rank, "steps": len(self.durations),
                "mean_ms": 1000 * sum(self.durations) / len(self.durations)}
        everyone = [None] * self.world
        dist.all_gather_object(everyone, mine)
        return everyone
