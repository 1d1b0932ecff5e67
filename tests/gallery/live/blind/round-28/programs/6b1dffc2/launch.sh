#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -u -m torch.distributed.run --standalone --nproc-per-node 3 pretrain.py --save-every 240
