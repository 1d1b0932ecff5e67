#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3 OMP_NUM_THREADS=1
export MASTER_PORT=$($PYTHON -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
for r in 0 1 2; do
  RANK=$r $PYTHON train.py &
done
wait
