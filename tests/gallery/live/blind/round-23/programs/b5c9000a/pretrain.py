import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from streaming import CurriculumStream


class StepClock(TrainerCallback):
    """Prints tokens per second along with the step."""

    def __init__(self, tokens_per_step):
        self.tokens = tokens_per_step
        self.last = time.time()

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % 5 == 0 and state.is_world_process_zero:
            now = time.time()
            print(
                f"step {state.global_step}: {5 * self.tokens / (now - self.last):.0f} tok/s",
                flush=True,
            )
            self.last = now


class SmallLMTrainer(Trainer):
    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        time.sleep(0.1)
        return loss


def main():
    torch.manual_seed(11)
    config = GPT2Config(
        vocab_size=256, n_positions=64, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=0, eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory(prefix="lm_") as out:
        args = TrainingArguments(
            output_dir=out,
            use_cpu=True,
            ddp_backend="gloo",
            ddp_timeout=2400,
            per_device_train_batch_size=4,
            max_steps=20000,
            learning_rate=1e-3,
            logging_steps=20,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = SmallLMTrainer(
            model=model,
            args=args,
            train_dataset=CurriculumStream(),
            callbacks=[StepClock(4 * args.world_size * 64)],
        )
        trainer.train()


if __name__ == "__main__":
    main()
