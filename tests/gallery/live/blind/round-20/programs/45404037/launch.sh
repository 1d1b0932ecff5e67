#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/ae_seg.XXXXXX)}
export RUN_DIR
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 3 fit.py --devices 3 --epochs 40
