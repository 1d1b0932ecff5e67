#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 GLOO_SOCKET_IFNAME=lo
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 train.py --tp 2
