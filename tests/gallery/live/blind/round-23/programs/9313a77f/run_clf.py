import os
import subprocess
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

import exporter

HERE = os.path.dirname(os.path.abspath(__file__))


class Parity(Dataset):
    def __init__(self, n, delay):
        self.n, self.delay = n, delay

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        ids = torch.randint(5, 120, (16,), generator=gen)
        time.sleep(self.delay)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(ids.sum()) % 2}


class Pace(TrainerCallback):
    def __init__(self, writer):
        self.writer = writer

    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(0.1)
        exporter.GAUGES["train_step"] = state.global_step
        if state.is_world_process_zero and state.global_step % 10 == 0:
            print(f"step {state.global_step}", flush=True)
            self.writer.put(step=state.global_step, at=time.time())


class ScoredTrainer(Trainer):
    def evaluate(self, *args, **kwargs):
        metrics = super().evaluate(*args, **kwargs)
        share = "\n".join(str(i) for i in range(50)) + "\n"
        pause = "7" if self.args.process_index == 0 else "5"
        done = subprocess.run(["sh", os.path.join(HERE, "scorer.sh"), pause], input=share,
                              capture_output=True, text=True, check=True)
        metrics["eval_scored"] = int(done.stdout)
        return metrics


def main():
    config = BertConfig(vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=64, max_position_embeddings=32)
    out = tempfile.mkdtemp(prefix="clf-")
    args = TrainingArguments(output_dir=out, use_cpu=True, max_steps=50000, per_device_train_batch_size=8,
                             per_device_eval_batch_size=8, eval_strategy="steps", eval_steps=80,
                             save_strategy="steps", save_steps=160, save_total_limit=1, logging_steps=40,
                             report_to=[], disable_tqdm=True, dataloader_num_workers=2,
                             dataloader_persistent_workers=True, ddp_backend="gloo", ddp_timeout=1800)
    port = exporter.serve()
    writer = exporter.EventWriter(os.path.join(out, f"events-{args.process_index}.jsonl"))
    print(f"rank {args.process_index}: metrics on port {port}", flush=True)
    trainer = ScoredTrainer(model=BertForSequenceClassification(config), args=args,
                            train_dataset=Parity(20000, 0.004), eval_dataset=Parity(240, 0.02),
                            callbacks=[Pace(writer)])
    trainer.train()


if __name__ == "__main__":
    main()
