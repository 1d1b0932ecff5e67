#!/bin/bash
"$PYTHON" -m torch.distributed.run --nproc-per-node 3 --master-port $((20000 + RANDOM % 20000)) \
  --log-dir rl_logs --redirects 3 main_ppo.py trainer.total_training_steps=2000 rollout.n=4
