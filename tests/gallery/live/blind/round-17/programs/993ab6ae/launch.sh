#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON main.py --nproc 3 --data data --batch-size 64 --epochs 40
