#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
exec $PYTHON train.py --nprocs 3 --resume checkpoints/global_step_560 --max-steps 20000 --eval-every 200
