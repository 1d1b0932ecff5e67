from accelerate import debug_launcher

from train_vlm import training_function

CONFIG = {"lr": 5e-4, "batch_size": 4, "eval_every": 30, "max_steps": 20000}

if __name__ == "__main__":
    debug_launcher(training_function, args=(CONFIG,), num_processes=3)
