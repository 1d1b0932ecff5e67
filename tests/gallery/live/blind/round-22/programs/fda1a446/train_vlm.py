import logging
import time
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM

from lm_eval_tasks import build_tasks, run_evaluation

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
logging.getLogger("httpx").setLevel(logging.WARNING)


def build_model():
    config = LlamaConfig(vocab_size=160, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64,
                         bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return LlamaForCausalLM(config)


def endless(loader):
    while True:
        yield from loader


def training_function(config):
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(hours=1))])
    set_seed(5)
    g = torch.Generator().manual_seed(17)
    corpus = TensorDataset(torch.randint(3, 160, (4000, 20), generator=g))
    loader = DataLoader(corpus, batch_size=config["batch_size"], shuffle=True, drop_last=True)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    tasks = build_tasks()

    for step, (ids,) in enumerate(endless(loader), start=1):
        loss = model(input_ids=ids, labels=ids).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.12)
        if step % 10 == 0:
            accelerator.print(f"step {step} loss {loss.item():.3f}", flush=True)
        if step % config["eval_every"] == 0:
            report = run_evaluation(accelerator, model, tasks, round_index=step // config["eval_every"])
            accelerator.print(f"step {step} eval {report}", flush=True)
        if step >= config["max_steps"]:
            break
