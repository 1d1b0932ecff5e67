#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=3 OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export CACHE_DIR=$(mktemp -d /tmp/lm-cache-XXXXXX)
for r in 0 1 2; do
    RANK=$r $PYTHON train.py --stages 32:80,64:4000 &
done
wait
