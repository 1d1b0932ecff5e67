#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
exec $PYTHON train_seg.py --world-size 3 --size 64
