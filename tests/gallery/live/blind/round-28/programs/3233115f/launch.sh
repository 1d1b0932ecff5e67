#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node 4 train_policy.py --dp 2 --pp 2
