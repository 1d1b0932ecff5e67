#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
exec $PYTHON pretrain.py --stages 3 --microbatches 4
