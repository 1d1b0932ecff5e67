import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from stream import TextStream


class Gpt(nn.Module):
    def __init__(self, vocab, dim=96, layers=2, length=128):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.tok(ids) + self.pos(torch.arange(n))
        return self.out(self.blocks(x, mask=mask, is_causal=True))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    stream = TextStream()
    accelerator.print(f"vocabulary {stream.bpe.vocab_size}", flush=True)
    model = Gpt(stream.bpe.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    loader = DataLoader(stream, batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    start, tokens = time.time(), 0
    for step, batch in enumerate(loader):
        ids = batch["input_ids"]
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tokens += ids.numel() * accelerator.num_processes
        if step % 20 == 0:
            accelerator.print(f"step {step} loss {loss.item():.4f} {tokens / (time.time() - start):.0f} tok/s", flush=True)
        if step >= 100_000:
            break


if __name__ == "__main__":
    main()
