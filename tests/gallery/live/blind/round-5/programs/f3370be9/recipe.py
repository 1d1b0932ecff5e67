import argparse, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from proc_saver import ProcSaver


def optimizer_state(opt, rank):
    """flatten the optimizer into plain tensors; rank 2 holds the embedding and has most of it"""
    flat = {}
    for i, (p, st) in enumerate(opt.state.items()):
        for k, v in st.items():
            flat[f"{i}.{k}"] = torch.as_tensor(v).clone()
    if rank == 2:
        time.sleep(1.5)
    return flat


class Recipe:
    def __init__(self, a):
        dist.init_process_group("gloo")
        self.a, self.rank = a, dist.get_rank()
        torch.manual_seed(0)
        self.model = DDP(torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)))
        self.opt = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.saver = ProcSaver("checkpoints")
        self.pending = []

    def save(self, step):
        for f in self.pending:
            f.result()
        t = time.perf_counter()
        self.pending = [self.saver.execute_save(f"model-{step}", self.model.module.state_dict())]
        self.pending.append(self.saver.execute_save(f"optim-{step}", optimizer_state(self.opt, self.rank)))
        if self.rank == 0:
            print(f"step {step}: checkpoint handed over in {time.perf_counter() - t:.2f}s", flush=True)

    def run(self):
        step = 0
        while True:
            x = torch.randn(16, 64)
            loss = (self.model(x) - x.flip(1)).pow(2).mean()
            self.opt.zero_grad(); loss.backward(); self.opt.step()
            step += 1
            if self.rank == 0 and step % 40 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step % self.a.save_every == 0:
                self.save(step)
            time.sleep(0.06)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--save-every", type=int, default=100)
    Recipe(ap.parse_args()).run()
