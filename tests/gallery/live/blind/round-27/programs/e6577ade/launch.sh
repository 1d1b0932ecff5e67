#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export SHARD_DIR=$(mktemp -d -t wds-shards-XXXXXX)
for RANK in 1 2; do
    RANK=$RANK $PYTHON train_wds.py &
done
RANK=0 exec $PYTHON train_wds.py
