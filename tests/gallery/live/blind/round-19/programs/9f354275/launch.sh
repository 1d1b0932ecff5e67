#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export SHARD_DIR=$(mktemp -d /tmp/shards-XXXXXX)
exec $PYTHON -m torch.distributed.run --nproc-per-node 2 --master-port 0 --rdzv-backend c10d --rdzv-endpoint localhost:0 train.py --data $SHARD_DIR
