#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nproc-per-node 3 --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" train_pipe.py
