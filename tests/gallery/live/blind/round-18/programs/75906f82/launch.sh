#!/bin/bash
cd "$(dirname "$0")"
export LOG_DIR=$(mktemp -d /tmp/ppo.XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 \
  ppo.py --updates 100000 --log-dir "$LOG_DIR"
