import multiprocessing as mp
import os
import shutil
import tempfile
import time

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from handshake import TrainerSide
from sampler_proc import run_sampler

VOCAB = 96


class Sequences(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, VOCAB, (n, 1), generator=g)
        self.ids = (start + torch.arange(24) * 5) % VOCAB

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        time.sleep(0.02)
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class PausedSection:
    """The sampler stands still while the body runs; all ranks enter together."""

    def __init__(self, side, step):
        self.side, self.step = side, step

    def __enter__(self):
        if self.side is not None:
            self.side.pause(self.step)
        dist.barrier()

    def __exit__(self, *exc):
        dist.barrier()
        if self.side is not None:
            self.side.release(self.step)


class ExportWeights(TrainerCallback):
    def __init__(self, side, weights_path):
        self.side, self.weights_path = side, weights_path

    def on_evaluate(self, args, state, control, model=None, **kw):
        with PausedSection(self.side, state.global_step):
            if state.is_world_process_zero:
                tmp = self.weights_path + ".tmp"
                torch.save(model.get_input_embeddings().weight.detach().clone(), tmp)
                os.replace(tmp, self.weights_path)


class ArchiveCheckpoint(TrainerCallback):
    """Copies the finished checkpoint next to the sampler's outputs of that step."""

    def __init__(self, side, archive):
        self.side, self.archive = side, archive

    def on_save(self, args, state, control, **kw):
        with PausedSection(self.side, state.global_step):
            if state.is_world_process_zero:
                src = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
                shutil.rmtree(self.archive, ignore_errors=True)
                shutil.copytree(src, self.archive)


def main():
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    root = os.path.join(tempfile.gettempdir(), f"grpo-{os.environ['TORCHELASTIC_RUN_ID']}")
    weights_path = os.path.join(root, "weights.pt")
    side = None
    if rank == 0:
        side = TrainerSide(os.path.join(root, "pause"))
        proc = mp.get_context("spawn").Process(
            target=run_sampler, args=(root, weights_path, VOCAB), daemon=True, name="sampler")
        proc.start()

    args = TrainingArguments(
        output_dir=os.path.join(root, "out"), max_steps=50000, per_device_train_batch_size=4,
        per_device_eval_batch_size=8, eval_strategy="steps", eval_steps=20, save_strategy="steps",
        save_steps=15, save_total_limit=2, logging_steps=10, report_to=[], use_cpu=True,
        disable_tqdm=True, ddp_timeout=3600, learning_rate=1e-3, dataloader_num_workers=0)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=32, n_embd=16, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    trainer = Trainer(
        model=model, args=args, train_dataset=Sequences(2048, 1), eval_dataset=Sequences(48, 2),
        callbacks=[ExportWeights(side, weights_path),
                   ArchiveCheckpoint(side, os.path.join(root, "archive"))])
    trainer.train()


if __name__ == "__main__":
    main()
