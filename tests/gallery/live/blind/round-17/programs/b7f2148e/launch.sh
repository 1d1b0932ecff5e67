#!/bin/bash
cd "$(dirname "$0")"
export EXP_DIR=${EXP_DIR:-$(mktemp -d)}
exec $PYTHON -m torch.distributed.run --standalone --nproc-per-node 2 train_asr.py
