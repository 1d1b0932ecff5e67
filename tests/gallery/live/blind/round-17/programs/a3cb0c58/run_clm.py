import sys
import threading
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

from corpus import TokenBlocks


class Throughput(TrainerCallback):
    """Reports tokens per second from a helper thread that sleeps most of the time."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.state = state
        threading.Thread(target=self._report, name="throughput", daemon=True).start()

    def _report(self):
        last, tic = 0, time.time()
        while True:
            time.sleep(20)
            step, now = self.state.global_step, time.time()
            if self.state.is_world_process_zero:
                print(f"{(step - last) / (now - tic):.2f} it/s at step {step}", flush=True)
            last, tic = step, now


def main():
    torch.set_num_threads(1)
    set_seed(0)
    args = TrainingArguments(
        output_dir=sys.argv[1],
        use_cpu=True,
        max_steps=200000,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=5e-4,
        eval_strategy="steps",
        eval_steps=60,
        save_strategy="steps",
        save_steps=120,
        save_total_limit=2,
        load_best_model_at_end=True,
        logging_steps=20,
        dataloader_num_workers=1,
        ddp_find_unused_parameters=False,
        report_to=[],
        disable_tqdm=True,
    )
    model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=TokenBlocks(40000),
        eval_dataset=TokenBlocks(480, seed=1),
        callbacks=[Throughput()],
    )
    trainer.train()


if __name__ == "__main__":
    main()
