#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
exec $PYTHON segment.py --gpus 2 --epochs 5000
