#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
export MASTER_PORT=$(( 21000 + RANDOM % 30000 ))
pids=()
for r in 0 1; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u pretrain.py --accum 4 --save-every 30 --eval-every 25 &
  pids+=($!)
done
trap 'kill ${pids[@]} 2>/dev/null' TERM INT
wait
