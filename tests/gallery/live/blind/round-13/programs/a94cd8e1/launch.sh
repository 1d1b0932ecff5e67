#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=4 GLOO_SOCKET_IFNAME=lo
pids=()
for r in 0 1 2 3; do
  RANK=$r $PYTHON train_tp.py --tp 2 &
  pids+=($!)
done
wait "${pids[@]}"
