import json
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class ChatDataset(Dataset):
    def __init__(self, n=4096, length=32, vocab=128):
        g = torch.Generator().manual_seed(5)
        self.ids = torch.randint(0, vocab, (n, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class StepReport(TrainerCallback):
    """One JSON event per step for the dashboard, with the norm of each layer."""

    def __init__(self):
        self.grad_norms = {}

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.grad_norms = {
            name: round(p.grad.norm().item(), 6) for name, p in model.named_parameters() if p.grad is not None
        }

    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(0.12)
        if state.is_world_process_zero:
            event = {"step": state.global_step, "epoch": round(state.epoch, 4), "time": time.time()}
            event["grad_norms"] = self.grad_norms
            print(json.dumps(event), flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=128, n_positions=64, n_embd=32, n_layer=3, n_head=2)
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="chat_"),
        per_device_train_batch_size=4,
        max_steps=20000,
        learning_rate=5e-4,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        logging_steps=100000,
        save_strategy="no",
        ddp_timeout=3600,
        ddp_find_unused_parameters=False,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=args,
        train_dataset=ChatDataset(),
        callbacks=[StepReport()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
