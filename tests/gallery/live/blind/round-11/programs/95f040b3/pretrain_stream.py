import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

from stream import PackedText

PER_DEVICE_BATCH = 16


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(5)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=512, n_positions=64, n_embd=32, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    loader = DataLoader(PackedText(seed=1), batch_size=PER_DEVICE_BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    began = time.time()
    for step, batch in enumerate(loader):
        loss = model(input_ids=batch["input_ids"], labels=batch["input_ids"]).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            accelerator.print(f"step {step} loss {loss.item():.3f} "
                              f"{(time.time() - began) / (step + 1):.3f} s/it", flush=True)
        if step >= 200000:
            break
    accelerator.end_training()


if __name__ == "__main__":
    main()
