#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node 3 train_lm.py --eval-every 140 --save-every 60
