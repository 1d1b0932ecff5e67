#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON train.py --devices 3 --epochs 400 --sample-every 3
