import argparse

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from callbacks import SampleSums
from textdata import Arithmetic


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=1000)
    p.add_argument("--eval-every", type=int, default=200)
    a = p.parse_args()
    cfg = GPT2Config(vocab_size=13, n_positions=16, n_embd=64, n_layer=2, n_head=2, bos_token_id=12, eos_token_id=12)
    model = GPT2LMHeadModel(cfg)
    args = TrainingArguments(
        output_dir="out", max_steps=a.max_steps, per_device_train_batch_size=16, learning_rate=1e-3, use_cpu=True,
        ddp_backend="gloo", logging_steps=25, save_steps=300, save_total_limit=1, report_to=[],
        disable_tqdm=True, dataloader_num_workers=1, seed=3)
    tr = Trainer(model=model, args=args, train_dataset=Arithmetic(20000, 1),
                 callbacks=[SampleSums(Arithmetic(2000, 2), a.eval_every)])
    tr.train()


if __name__ == "__main__":
    main()
