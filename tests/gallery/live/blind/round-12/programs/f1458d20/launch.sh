#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 GLOO_SOCKET_IFNAME=lo
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2
trap 'kill $(jobs -p) 2>/dev/null' TERM INT
RANK=1 $PYTHON finetune.py &
RANK=0 $PYTHON finetune.py
wait
