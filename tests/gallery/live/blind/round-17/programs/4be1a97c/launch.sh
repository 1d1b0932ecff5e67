#!/bin/bash
cd "$(dirname "$0")"
export OUT_DIR=${OUT_DIR:-$(mktemp -d)}
exec $PYTHON -m torch.distributed.run --nproc-per-node 3 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 pretrain.py
