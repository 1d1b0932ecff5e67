import os
import tempfile
import time

from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from bpe import CharBPE
from corpus import ShardStream, TokenizeAndTruncate


class StreamTrainer(Trainer):
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=self.args.per_device_train_batch_size,
                          collate_fn=self.data_collator)

    def training_step(self, *args, **kwargs):
        time.sleep(0.2)
        return super().training_step(*args, **kwargs)


class StepLog(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f} t {time.strftime('%H:%M:%S')}", flush=True)


def main():
    rank = int(os.environ["RANK"])
    tokenizer = CharBPE()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=512, n_positions=64, n_embd=32, n_layer=2, n_head=2,
                                       bos_token_id=1, eos_token_id=2))
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(output_dir=out, use_cpu=True, max_steps=20000, per_device_train_batch_size=4,
                                 learning_rate=3e-4, logging_steps=5, save_strategy="no", report_to="none",
                                 disable_tqdm=True, ddp_backend="gloo", ddp_timeout=3600)
        trainer = StreamTrainer(model=model, args=args, train_dataset=ShardStream(rank),
                                data_collator=TokenizeAndTruncate(tokenizer), callbacks=[StepLog()])
        trainer.train()


if __name__ == "__main__":
    main()
