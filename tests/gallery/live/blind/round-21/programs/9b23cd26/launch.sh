#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec $PYTHON train_asr.py --devices 2 --warmup-steps 40 --max-steps 100000
