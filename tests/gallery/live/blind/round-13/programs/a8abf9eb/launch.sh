#!/bin/bash
export GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 ACCELERATE_USE_CPU=true
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 \
    --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py
