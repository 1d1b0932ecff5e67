#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=3
for r in 1 2; do
  RANK=$r $PYTHON multitask.py &
done
export RANK=0
exec $PYTHON multitask.py
