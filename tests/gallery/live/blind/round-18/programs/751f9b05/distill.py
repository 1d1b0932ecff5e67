import os

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

from teacher_client import TeacherClient

torch.set_num_threads(1)


class Blocks(Dataset):
    def __init__(self, n=6000, length=48, vocab=256):
        g = torch.Generator().manual_seed(4)
        walk = torch.randint(-3, 4, (n, length), generator=g).cumsum(1)
        start = torch.randint(0, vocab, (n, 1), generator=g)
        self.ids = (start + walk) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class TeacherCheck(TrainerCallback):
    def __init__(self, client):
        self.client = client

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            info = self.client.wait_ready()
            print(f"teacher service ready, vocab {info['vocab']}", flush=True)


class Progress(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and "loss" in (logs or {}):
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


class DistillTrainer(Trainer):
    def __init__(self, *a, client, distill_start=60, alpha=0.5, **kw):
        super().__init__(*a, **kw)
        self.client, self.distill_start, self.alpha = client, distill_start, alpha

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        out = model(**inputs)
        loss = out.loss
        if self.state.global_step >= self.distill_start:
            index, logit = self.client.topk(inputs["input_ids"])
            logp = F.log_softmax(out.logits, -1).gather(-1, index)
            loss = (1 - self.alpha) * loss - self.alpha * (logit.softmax(-1) * logp).sum(-1).mean()
        return (loss, out) if return_outputs else loss


def main():
    args = TrainingArguments(
        output_dir=os.environ["OUT_DIR"], per_device_train_batch_size=4, num_train_epochs=20, learning_rate=1e-3,
        logging_steps=10, save_steps=500, save_total_limit=1, report_to=[], use_cpu=True, disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    set_seed(7)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4))
    client = TeacherClient(int(os.environ["TEACHER_PORT"]))
    trainer = DistillTrainer(model=model, args=args, train_dataset=Blocks(), client=client,
                             callbacks=[TeacherCheck(client), Progress()])
    trainer.train()


if __name__ == "__main__":
    main()
