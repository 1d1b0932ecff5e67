import json
import time


class RunMonitor:
    def __init__(self, rank, path, tracked=("ff.w2", "wo")):
        self.main = rank == 0
        self.path, self.tracked = path, tracked
        self.t0 = time.time()

    def scalars(self, step, loss, lr):
        if self.main:
            print(f"[{time.time() - self.t0:6.1f}s] step {step:5d} loss {loss:.4f} lr {lr:.2e}", flush=True)

    def weights(self, step, model):
        if not self.main:
            return
        row = {"step": step}
        for name, p in model.named_parameters():
            if any(t in name for t in self.tracked):
                w = p.detach()
                w = w.full_tensor() if hasattr(w, "full_tensor") else w
                row[name] = {"norm": w.norm().item(), "absmax": w.abs().max().item()}
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")
