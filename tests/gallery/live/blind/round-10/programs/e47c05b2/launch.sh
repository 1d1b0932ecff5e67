#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
rm -rf runs
exec $PYTHON -u train.py --devices 3
