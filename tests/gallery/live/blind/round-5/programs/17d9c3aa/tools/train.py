import os, sys, runpy, time
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import torch, torch.distributed as dist
import hooks


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 2), torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 7 * 7, 5)))
        self.optim = torch.optim.SGD(self.model.parameters(), **cfg["optimizer"])
        self.lr = cfg["optimizer"]["lr"]
        self.hooks = [hooks.build(h) for h in cfg["log_hooks"]] if self.rank == 0 else []
        self.iter = self.epoch = 0

    def run(self):
        for self.epoch in range(self.cfg["max_epochs"]):
            for _ in range(self.cfg["iters_per_epoch"]):
                out = self.model(torch.randn(4, 3, 16, 16))
                loss = out.pow(2).mean()
                self.optim.zero_grad(); loss.backward(); self.optim.step()
                self.loss = loss.item()
                self.iter += 1
                time.sleep(0.1)
                for h in self.hooks:
                    h.after_iter(self)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner(runpy.run_path(sys.argv[1])).run()
