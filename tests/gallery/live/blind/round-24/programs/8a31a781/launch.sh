#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export ROLLOUT_DIR=$(mktemp -d /tmp/rollouts-XXXXXX)
for r in 0 1; do
    RANK=$r $PYTHON train_rl.py &
done
export RANK=2
exec $PYTHON train_rl.py
