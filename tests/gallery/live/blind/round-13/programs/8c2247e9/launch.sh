#!/bin/bash
export GLOO_SOCKET_IFNAME=lo
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 \
    --rdzv-backend c10d --rdzv-endpoint localhost:0 learner.py --updates 200000
