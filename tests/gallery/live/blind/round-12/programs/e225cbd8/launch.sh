#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 GLOO_SOCKET_IFNAME=lo
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$((20000 + RANDOM % 20000))
trap 'kill $(jobs -p) 2>/dev/null' TERM INT
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON main.py --rampup 4,4,60 --global-batch 16 --micro-batch 4 &
done
wait
