import math

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_scheduler

from data import NliPairs

logger = get_logger(__name__)

BATCH = 8
EPOCHS = 30
EVAL_EVERY = 60


def evaluate(accelerator, model, loader):
    model.eval()
    right = total = 0
    for batch in loader:
        with torch.no_grad():
            logits = model(**batch).logits
        pred, ref = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
        right += (pred == ref).sum().item()
        total += ref.numel()
    model.train()
    return right / max(1, total)


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(13)
    config = DistilBertConfig(vocab_size=600, dim=64, n_layers=2, n_heads=4, hidden_dim=128,
                              max_position_embeddings=64, num_labels=2)
    model = DistilBertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    train_loader = DataLoader(NliPairs(6400, 1), batch_size=BATCH, shuffle=True)
    eval_loader = DataLoader(NliPairs(512, 2), batch_size=BATCH)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(
        model, optimizer, train_loader, eval_loader)

    total_steps = EPOCHS * len(train_loader)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=50, num_training_steps=total_steps)
    progress = tqdm(range(total_steps), total=total_steps, mininterval=2.0,
                    disable=not accelerator.is_main_process)

    best = 0.0
    for epoch in range(EPOCHS):
        running = 0.0
        for step, batch in enumerate(train_loader):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            running += loss.item()
            progress.update(1)

            if progress.n and progress.n % EVAL_EVERY == 0:
                acc = evaluate(accelerator, model, eval_loader)
                best = max(best, acc)
                accelerator.print(f"step {progress.n} accuracy {acc:.4f} best {best:.4f}")

        accelerator.print(f"epoch {epoch} loss {running / len(train_loader):.4f} ppl {math.exp(running / len(train_loader)):.2f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
