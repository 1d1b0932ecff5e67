import time
from datetime import timedelta

import torch
import torch.distributed as dist
from accelerate import Accelerator, InitProcessGroupKwargs, debug_launcher
from transformers import GPT2Config, GPT2LMHeadModel

from corpus import Shard
from layout import PositionPlanner

VOCAB = 160


def training_function(max_steps=40000):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=1))])
    torch.manual_seed(3)
    config = GPT2Config(vocab_size=VOCAB, n_positions=512, n_embd=32, n_layer=2, n_head=2,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    planner = PositionPlanner(dist.new_group())
    shard = Shard(accelerator.process_index, VOCAB)
    accelerator.print(f"{accelerator.num_processes} processes, {sum(p.numel() for p in model.parameters())} weights")

    running = 0.0
    for step, ids in enumerate(shard, start=1):
        if step > max_steps:
            break
        time.sleep(0.2)
        padded = planner.padded(ids.shape[1])
        batch = torch.nn.functional.pad(ids, (0, padded - ids.shape[1]))
        labels = batch.masked_fill(batch == 0, -100)
        start = planner.offsets(padded)
        positions = (torch.arange(padded) + start).remainder(config.n_positions).expand_as(batch)
        loss = model(input_ids=batch, attention_mask=(batch != 0).long(), position_ids=positions, labels=labels).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        running += loss.item()
        if step % 10 == 0:
            accelerator.print(f"step {step}: loss {running / 10:.3f} (len {padded})", flush=True)
            running = 0.0


if __name__ == "__main__":
    debug_launcher(training_function, num_processes=4)
