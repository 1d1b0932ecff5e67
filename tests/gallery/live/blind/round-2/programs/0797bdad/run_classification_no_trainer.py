import argparse
import logging
import time

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from model import TinyEncoder
from data import ToyIntents

torch.set_num_threads(1)
logger = get_logger(__name__)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--num_epochs", type=int, default=3)
    p.add_argument("--per_device_batch_size", type=int, default=8)
    p.add_argument("--eval_steps", type=int, default=50)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


def evaluate(accelerator, model, loader):
    model.eval()
    correct = total = 0
    for batch in loader:
        with torch.no_grad():
            logits = model(batch["input_ids"], batch["mask"])
        preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
        correct += (preds == refs).sum().item()
        total += refs.numel()
    model.train()
    return correct / max(total, 1)


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logger.info(accelerator.state, main_process_only=False)
    set_seed(args.seed)

    train_loader = DataLoader(ToyIntents(2400, seed=0), batch_size=args.per_device_batch_size, shuffle=True)
    eval_loader = DataLoader(ToyIntents(240, seed=1), batch_size=args.per_device_batch_size)
    model = TinyEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)

    total_steps = args.num_epochs * len(train_loader)
    progress_bar = tqdm(range(total_steps), disable=not accelerator.is_local_main_process, mininterval=2)
    logger.info(f"***** Running training: {total_steps} steps *****")

    best = 0.0
    for epoch in range(args.num_epochs):
        for step, batch in enumerate(train_loader):
            logits = model(batch["input_ids"], batch["mask"])
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.05)
            progress_bar.update(1)
            if step % 10 == 0:
                logger.info(f"epoch {epoch} step {step} loss {loss.item():.4f}")

            if progress_bar.n > 0 and progress_bar.n % args.eval_steps == 0:
                acc = evaluate(accelerator, model, eval_loader)
                best = max(best, acc)
                logger.info(f"eval accuracy {acc:.4f} (best {best:.4f})")

    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
