#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=3 GLOO_SOCKET_IFNAME=lo
for r in 0 1 2; do
  RANK=$r $PYTHON rl.py &
done
wait
