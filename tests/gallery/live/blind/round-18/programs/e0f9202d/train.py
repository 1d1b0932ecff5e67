import argparse
import json
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader

from paths import last_checkpoint, make_run_dir
from tagging import Sentences, Tagger


def rewind(acc, run_dir, step):
    path = last_checkpoint(run_dir)
    if path is None:
        return None
    acc.print(f"step {step}: loss went up, going back to {os.path.basename(path)}", flush=True)
    acc.wait_for_everyone()
    acc.load_state(path)
    return int(path.rsplit("_", 1)[1])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--config", required=True)
    cfg = argparse.Namespace(**json.load(open(ap.parse_args().config)))
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    torch.manual_seed(7)
    run_dir = make_run_dir(os.environ.get("RUNS_DIR", "runs"), cfg.name)

    data = Sentences(cfg.samples, cfg.length, cfg.vocab, cfg.labels)
    loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=False)
    model = Tagger(cfg.vocab, cfg.labels, cfg.hidden)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / cfg.warmup))
    model, opt, loader, sched = acc.prepare(model, opt, loader, sched)

    step, ema, cooldown = 0, None, 0
    while step < cfg.max_steps:
        for x, y in loader:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            acc.backward(loss)
            opt.step()
            sched.step()
            opt.zero_grad()
            step += 1

            mean = acc.reduce(loss.detach(), reduction="mean").item()
            ema = mean if ema is None else 0.95 * ema + 0.05 * mean
            cooldown = max(0, cooldown - 1)
            if step % cfg.log_every == 0:
                acc.print(f"step {step} loss {mean:.4f} ema {ema:.4f} lr {sched.get_last_lr()[0]:.5f}", flush=True)
            if step % cfg.save_every == 0:
                acc.wait_for_everyone()
                if acc.is_main_process:
                    acc.save_state(os.path.join(run_dir, f"step_{step}"))
            if mean > cfg.spike_ratio * ema and step > 2 * cfg.warmup and not cooldown:
                back = rewind(acc, run_dir, step)
                cooldown = 200
                if back is not None:
                    ema = None
            if step >= cfg.max_steps:
                break
    acc.wait_for_everyone()
    acc.print("done")


if __name__ == "__main__":
    main()
