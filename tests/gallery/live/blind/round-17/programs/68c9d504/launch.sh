#!/bin/bash
cd "$(dirname "$0")"
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
export SCRATCH=${SCRATCH:-$(mktemp -d)}
exec $PYTHON -m torch.distributed.run --nnodes 1 --nproc-per-node 3 --max-restarts 3 --monitor-interval 0.5 \
  --rdzv-backend c10d --rdzv-endpoint localhost:0 --rdzv-id seg-$RANDOM train_seg.py
