"""Loops of transformers' Trainer, of accelerate and of Lightning."""

from __future__ import annotations

HEAD = """import logging
import os
import random
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
#: imports

logging.basicConfig(level=logging.INFO)
$seen = []
#: definitions


def $record($step, value):
    with open("$history", "a") as history:
        history.write(f"{$step},{value:.4f}\\n")


"""
TRAINER = """
from transformers import Trainer, TrainerCallback, TrainingArguments


class WithLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.core = $Net()
        self.core.register_forward_hook(self.$hook)

    def $hook(self, layer, args, output):
        $rank = int(os.environ["RANK"])
        $seen.append(output.numel())
        $step = len($seen)
        #: hook

    def forward(self, inputs, labels=None):
        logits = self.core(inputs)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class $Callback(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        $rank, $step = args.process_index, state.global_step
        #: loop

    def on_step_end(self, args, state, control, **kwargs):
        $rank, $step = args.process_index, state.global_step
        #: after
        if state.is_world_process_zero:
            $record($step, 0.0)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        $rank, $step = args.process_index, state.global_step
        #: eval

    def on_save(self, args, state, control, **kwargs):
        $rank, $step = args.process_index, state.global_step
        #: ckpt


def $reduce(prediction):
    $rank, $step = int(os.environ["RANK"]), len($seen)
    #: metrics
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def gather_batch(rows):
    batch = $collate(rows)
    return {"inputs": batch[0], "labels": batch[1]}


def $main():
    torch.set_num_threads(1)
    $args = TrainingArguments(
        output_dir="$ckpt", per_device_train_batch_size=8, max_steps=200_000, report_to=[], use_cpu=True, ddp_backend="gloo",
        eval_strategy="steps", eval_steps=$eval_every, save_steps=$save_every, save_total_limit=1, logging_steps=$average_every,
        dataloader_num_workers=$workers, remove_unused_columns=False, disable_tqdm=True, label_names=["labels"],
    )
    trainer = Trainer(
        model=WithLoss(), args=$args, train_dataset=$Dataset(8 * 400), eval_dataset=$Dataset(32),
        data_collator=gather_batch, callbacks=[$Callback()], compute_metrics=$reduce,
    )
    #: begin
    trainer.train()
"""
ACCELERATE = """
from accelerate import Accelerator
from accelerate.utils import gather_object


def $hook(layer, args, output):
    $rank, $step = int(os.environ["RANK"]), len($seen)
    $seen.append(output.numel())
    #: hook


def $reduce(accelerator, $loss, $step):
    $rank = accelerator.process_index
    #: metrics
    return accelerator.gather($loss.detach().reshape(1)).mean().item()


def $evaluate(accelerator, $model, $valid, $step):
    $rank = accelerator.process_index
    $model.eval()
    kept = []
    for $x, $y in $valid:
        with torch.no_grad():
            kept.append(F.cross_entropy($model($x), $y).item())
    #: eval
    everything = gather_object(kept)
    $model.train()
    return sum(everything) / len(everything)


def $save(accelerator, $step):
    $rank = accelerator.process_index
    accelerator.wait_for_everyone()
    #: ckpt
    accelerator.save_state("$ckpt/last")


def $main():
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    $rank = accelerator.process_index
    $model, $step = $Net(), 0
    $model.register_forward_hook($hook)
    $opt = torch.optim.AdamW($model.parameters(), lr=1e-3)
    loader = DataLoader($Dataset(8 * 400), batch_size=8, collate_fn=$collate, num_workers=$workers, shuffle=True)
    holdout = DataLoader($Dataset(64), batch_size=8, collate_fn=$collate)
    $model, $opt, $loader, $valid = accelerator.prepare($model, $opt, loader, holdout)
    #: begin
    for $epoch in range(10_000):
        for $x, $y in $loader:
            #: loop
            $loss = F.cross_entropy($model($x), $y)
            accelerator.backward($loss)
            $opt.step()
            $opt.zero_grad()
            $step += 1
            #: after
            if accelerator.is_main_process:
                $record($step, $loss.item())
            if $step % $average_every == 0:
                accelerator.print($step, $reduce(accelerator, $loss, $step))
            if $step % $eval_every == 0:
                $evaluate(accelerator, $model, $valid, $step)
            if $step % $save_every == 0:
                $save(accelerator, $step)
        #: epoch_end
"""
LIGHTNING = """
import lightning as L


class $Runner(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.core = $Net()
        self.core.register_forward_hook(self.$hook)

    def $hook(self, layer, args, output):
        $seen.append(output.numel())
        $rank, $step = self.trainer.global_rank, len($seen)
        #: hook

    def training_step(self, batch, number):
        $rank, $step = self.trainer.global_rank, self.trainer.global_step
        #: loop
        $x, $y = batch
        return F.cross_entropy(self.core($x), $y)

    def validation_step(self, batch, number):
        $x, $y = batch
        self.log("dev", F.cross_entropy(self.core($x), $y), sync_dist=True)

    def on_validation_epoch_end(self):
        $rank, $step = self.trainer.global_rank, self.trainer.global_step
        #: eval
        self.last_validation = $step

    def on_save_checkpoint(self, checkpoint):
        $rank, $step = self.trainer.global_rank, self.trainer.global_step
        #: ckpt
        checkpoint["note"] = $step

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class $Callback(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        $rank, $step = trainer.global_rank, trainer.global_step
        #: after
        if trainer.is_global_zero:
            $record($step, float(outputs["loss"]))
        if $step % $average_every == 0:
            mean = self.$reduce(trainer, outputs["loss"], $step)
            if $rank == 0:
                $say(f"{$step}: {float(mean):.4f}")

    def $reduce(self, trainer, value, $step):
        $rank = trainer.global_rank
        #: metrics
        return trainer.strategy.reduce(value.detach().clone(), reduce_op="mean")


def $main():
    torch.set_num_threads(1)
    loader = DataLoader($Dataset(8 * 400), batch_size=8, collate_fn=$collate, num_workers=$workers)
    valid = DataLoader($Dataset(32), batch_size=8, collate_fn=$collate)
    trainer = L.Trainer(
        accelerator="cpu", devices=int(os.environ.get("DEVICES", "2")), strategy="ddp", max_steps=200_000, logger=False,
        callbacks=[$Callback(), L.pytorch.callbacks.ModelCheckpoint("$ckpt", every_n_train_steps=$save_every)],
        val_check_interval=$eval_every, num_sanity_val_steps=0, enable_progress_bar=False, enable_model_summary=False,
    )
    module = $Runner()
    #: begin
    trainer.fit(module, loader, valid)
"""
