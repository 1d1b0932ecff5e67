#!/bin/bash
cd "$(dirname "$0")"
export RUN_DIR=${RUN_DIR:-$(mktemp -d)}
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 --max-restarts 2 train_pp.py
