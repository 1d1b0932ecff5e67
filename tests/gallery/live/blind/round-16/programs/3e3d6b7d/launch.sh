#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export CKPT_DIR=$(mktemp -d /tmp/fsdp.XXXXXX)
exec $PYTHON pretrain.py --ranks 2 --ckpt-dir "$CKPT_DIR"
