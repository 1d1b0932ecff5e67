#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 ACCELERATE_USE_CPU=true
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 train_rl.py --problems 6000 --completions 8
