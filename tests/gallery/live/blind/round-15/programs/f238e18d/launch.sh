#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TP_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$((20000 + RANDOM % 20000))
for r in 0 1 2; do
  RANK=$r $PYTHON -u batch_ps.py --seconds 1500 &
done
wait
