import functools
import tempfile
import time

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from transformers import GPT2Config, GPT2LMHeadModel

import corpus
from iterators import PrefetchIterator


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    root = [None]
    if acc.is_main_process:
        root[0] = tempfile.mkdtemp(prefix="corpus_")
        corpus.build(root[0], shards=acc.num_processes)
    broadcast_object_list(root)
    source = functools.partial(corpus.stream, root[0], acc.process_index, 4, 32)
    data = PrefetchIterator(source)
    cfg = GPT2Config(vocab_size=400, n_positions=32, n_embd=64, n_layer=2, n_head=2, resid_pdrop=0.0,
                     embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, opt = acc.prepare(model, opt)
    t0 = time.time()
    for step, rows in enumerate(data, 1):
        ids = torch.tensor(rows)
        loss = model(input_ids=ids, labels=ids).loss
        acc.backward(loss)
        acc.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            acc.print(f"step {step} loss {loss.item():.3f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
