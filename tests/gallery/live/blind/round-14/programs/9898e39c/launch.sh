#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export RUN_DIR=$(mktemp -d /tmp/pretrain-XXXXXX)
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 pretrain.py --run-dir "$RUN_DIR"
