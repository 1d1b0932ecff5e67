#!/bin/bash
export OMP_NUM_THREADS=1
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m torch.distributed.run --nnodes 1 --nproc-per-node 3 --master-addr 127.0.0.1 --master-port $PORT \
    pretrain.py --steps 4000 --save-every 30 --output outputs/run1
