#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$(( 22000 + RANDOM % 20000 )) WORLD_SIZE=3 OMP_NUM_THREADS=1
export CKPT_DIR=$(mktemp -d)
TIME_LIMIT=${TIME_LIMIT:-900}
GRACE=${GRACE:-862}

for RANK in 0 1 2; do
  export RANK
  $PYTHON fit.py --ckpt-dir "$CKPT_DIR" &
done
WORKERS=$!
( sleep $((TIME_LIMIT - GRACE)); kill -USR1 $WORKERS ) &
wait
