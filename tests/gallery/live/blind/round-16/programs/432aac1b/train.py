import argparse
import logging
import os
import time

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger

from model import BFN, Net
from utils_train import EMA, forever, load_config, make_dataloaders, seed_everything

logger = get_logger(__name__)


@torch.no_grad()
def validate(cfg, model, val_dl, step):
    model.eval()
    total, n = 0.0, 0
    for i, (batch,) in enumerate(val_dl):
        if i >= cfg.val_batches:
            break
        total += model(batch).item()
        n += 1
    model.train()
    logger.info("step %d val_loss %.4f", step, total / n)
    return total / n


def main(cfg):
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    seed_everything(cfg.seed)
    accelerator = Accelerator(cpu=True)
    model = BFN(Net(cfg.channels))
    ema = EMA(model, cfg.ema_decay) if cfg.ema_decay > 0 else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    train_dl, val_dl = make_dataloaders(cfg)
    model, optimizer, train_dl = accelerator.prepare(model, optimizer, train_dl)
    logger.info("%d processes, %d parameters", accelerator.num_processes, sum(p.numel() for p in model.parameters()))

    best, t0 = float("inf"), time.time()
    for step, (batch,) in enumerate(forever(train_dl), 1):
        loss = model(batch)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if ema is not None:
            ema.update(accelerator.unwrap_model(model))

        if step % cfg.log_interval == 0:
            logger.info("step %d loss %.4f %.1f it/s", step, loss.item(), step / (time.time() - t0))

        if step % cfg.val_interval == 0:
            if accelerator.is_main_process:
                val_loss = validate(cfg, ema.model if ema is not None else model, val_dl, step)
                if val_loss < best:
                    best = val_loss
                    os.makedirs(cfg.checkpoint_dir, exist_ok=True)
                    torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(cfg.checkpoint_dir, "best.pt"))
            accelerator.wait_for_everyone()
        if step % cfg.checkpoint_interval == 0:
            accelerator.save_state(os.path.join(cfg.checkpoint_dir, "last"))
        if step >= cfg.n_training_steps:
            break
    accelerator.end_training()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--config", required=True)
    main(load_config(p.parse_args().config))
