import multiprocessing as mp
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from study import SqliteStudy


class Arithmetic(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.start = [rng.randrange(40) for _ in range(n)]
        self.stride = [rng.randrange(1, 5) for _ in range(n)]

    def __len__(self):
        return len(self.start)

    def __getitem__(self, i):
        time.sleep(0.002)
        ids = (self.start[i] + self.stride[i] * torch.arange(24)) % 64
        return {"input_ids": ids, "labels": ids}


class StepLog(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"  step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


class PacedTrainer(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        time.sleep(0.2)
        return loss

    def prediction_step(self, *args, **kwargs):
        time.sleep(0.08)
        return super().prediction_step(*args, **kwargs)


def build_trainer(params, steps, out_dir):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    args = TrainingArguments(output_dir=out_dir, use_cpu=True, ddp_backend="gloo", max_steps=steps,
                             per_device_train_batch_size=8, per_device_eval_batch_size=8,
                             learning_rate=params["learning_rate"], weight_decay=params["weight_decay"],
                             warmup_steps=params["warmup"], logging_steps=10, save_strategy="no",
                             report_to=[], disable_tqdm=True, dataloader_num_workers=1,
                             dataloader_pin_memory=False)
    return PacedTrainer(model=model, args=args, train_dataset=Arithmetic(4096, 1),
                        eval_dataset=Arithmetic(640, 2), callbacks=[StepLog()])


def run_worker(rank, world_size, work_dir, n_trials, steps):
    mp.set_start_method("fork", force=True)
    torch.set_num_threads(1)
    TrainingArguments(output_dir=work_dir, use_cpu=True, ddp_backend="gloo", report_to=[]).device
    study = SqliteStudy(os.path.join(work_dir, "study.db")) if rank == 0 else None
    for t in range(n_trials):
        box = [study.ask() if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        params = box[0]
        if rank == 0:
            print(f"trial {t} lr {params['learning_rate']:.2e} wd {params['weight_decay']:.3f}", flush=True)
        trainer = build_trainer(params, steps, os.path.join(work_dir, "out"))
        trainer.train()
        value = trainer.evaluate()["eval_loss"]
        if rank == 0:
            study.tell(params["id"], value)
            print(f"trial {t} eval loss {value:.4f}", flush=True)
        dist.barrier()
