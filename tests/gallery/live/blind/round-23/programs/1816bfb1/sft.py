import os
import random
import tempfile
import time
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

from records import build, collate
from sidecar import MetricSidecar


def evaluate(accelerator, model, loader):
    model.eval()
    losses = []
    with torch.no_grad():
        for batch in loader:
            time.sleep(0.35)
            loss = accelerator.unwrap_model(model)(**batch).loss
            losses.append(loss.repeat(batch["input_ids"].shape[0]))
    model.train()
    return accelerator.gather_for_metrics(torch.cat(losses)).mean().item()


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3,
                              kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(minutes=30))])
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                         num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    train = DataLoader(build(1800, 1), batch_size=4, shuffle=True, collate_fn=collate, num_workers=1,
                       persistent_workers=True, prefetch_factor=4)
    held_out = DataLoader(build(300, 2), batch_size=4, collate_fn=collate)
    model, optimizer, train, held_out = accelerator.prepare(model, optimizer, train, held_out)
    sidecar = MetricSidecar() if accelerator.is_main_process else None
    folder = tempfile.mkdtemp(prefix="sft-") if accelerator.is_main_process else None
    pace = random.Random(accelerator.process_index)

    step = 0
    for epoch in range(100000):
        for batch in train:
            with accelerator.accumulate(model):
                time.sleep(pace.uniform(0.04, 0.16))
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            if accelerator.is_main_process and step % 15 == 0:
                line = f"epoch {epoch} step {step} loss {loss.item():.4f}"
                print(line, flush=True)
                sidecar.send(line)
            if step % 150 == 0:
                value = evaluate(accelerator, model, held_out)
                if accelerator.is_main_process:
                    print(f"step {step} held out {value:.4f}", flush=True)
                    torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(folder, "last.pt"))
                accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
