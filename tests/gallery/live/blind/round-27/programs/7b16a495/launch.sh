#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON -m torch.distributed.run --standalone --nproc_per_node=3 train_clips.py --epochs 400
