#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export RUN_DIR=${RUN_DIR:-$(mktemp -d /tmp/speechlm.XXXXXX)}
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 main.py
