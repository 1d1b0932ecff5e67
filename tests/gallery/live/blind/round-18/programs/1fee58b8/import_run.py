import argparse
import json
import os

import torch

from common import build_model, training_args
from textgen import write_corpus


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-dir", required=True)
    ap.add_argument("--step", type=int, required=True)
    args = ap.parse_args()
    write_corpus(os.path.join(args.run_dir, "corpus"))
    targs = training_args(args.run_dir)
    model = build_model()
    out = os.path.join(targs.output_dir, f"checkpoint-{args.step}")
    model.save_pretrained(out)
    no_decay = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    decay = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.0}, {"params": no_decay, "weight_decay": 0.0}], lr=5e-4)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / targs.max_steps))
    torch.save(opt.state_dict(), os.path.join(out, "optimizer.pt"))
    torch.save(sched.state_dict(), os.path.join(out, "scheduler.pt"))
    state = {"epoch": args.step / targs.max_steps, "global_step": args.step, "max_steps": targs.max_steps, "logging_steps": 20,
             "save_steps": 1000, "eval_steps": 500, "num_train_epochs": 1, "train_batch_size": 8, "log_history": [],
             "is_local_process_zero": True, "is_world_process_zero": True, "is_hyper_param_search": False,
             "total_flos": 0, "trial_name": None, "trial_params": None, "best_metric": None, "best_model_checkpoint": None}
    with open(os.path.join(out, "trainer_state.json"), "w") as f:
        json.dump(state, f, indent=2)


if __name__ == "__main__":
    main()
