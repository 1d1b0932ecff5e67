#!/bin/bash
cd "$(dirname "$0")"
export ACCELERATE_USE_CPU=1 OMP_NUM_THREADS=1 RUN_DIR=$(mktemp -d)
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 train.py
