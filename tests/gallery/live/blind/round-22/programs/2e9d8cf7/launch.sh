#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=4
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export JOB_SCRATCH=$(mktemp -d)
$PYTHON capacity_feed.py "$JOB_SCRATCH" 2 18 &
for r in 1 2 3; do
    RANK=$r $PYTHON train_local_sgd.py &
done
export RANK=0
exec $PYTHON train_local_sgd.py
