import shutil
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.utils.data import DataLoader

from stream import WORDS, Bpe, TextStream, write_corpus


class Causal(nn.Module):
    def __init__(self, vocab, dim=64, layers=2, length=128):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True, norm_first=True), layers,
            enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        t = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.body(self.emb(ids) + self.pos(torch.arange(t)), mask=mask, is_causal=True))


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    set_seed(3)
    folder = [tempfile.mkdtemp(prefix="corpus-") if accelerator.is_main_process else None]
    if accelerator.is_main_process:
        write_corpus(folder[0])
    broadcast_object_list(folder)
    bpe = Bpe(WORDS)
    length = 96
    loader = DataLoader(TextStream(folder[0], bpe, length), batch_size=6)
    model = Causal(len(bpe.vocab), length=length)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model, opt, loader = accelerator.prepare(model, opt, loader)

    t0 = time.time()
    for step, batch in enumerate(loader, 1):
        ids = batch["input_ids"]
        with accelerator.accumulate(model):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        if step % 20 == 0:
            accelerator.print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / 20:.3f} s/step", flush=True)
            t0 = time.time()
        if step >= 200000:
            break
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(folder[0], ignore_errors=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
