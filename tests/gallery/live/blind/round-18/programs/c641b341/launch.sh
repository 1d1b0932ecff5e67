#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2 OMP_NUM_THREADS=1
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
trap 'kill $(jobs -p) 2>/dev/null' TERM INT
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON train_pp.py --rampup 8 8 600 &
done
wait
