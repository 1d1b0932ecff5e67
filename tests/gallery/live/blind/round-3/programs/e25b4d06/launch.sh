#!/bin/bash
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 4 \
  --master-addr 127.0.0.1 --master-port $((20000 + RANDOM % 20000)) \
  --log-dir logs --redirects 3 run_training.py --epochs 200
