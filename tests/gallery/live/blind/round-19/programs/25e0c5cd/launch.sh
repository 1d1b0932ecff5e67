#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
RUN=$(mktemp -d /tmp/hsdp-run.XXXXXX)
PORT=$(( 20000 + RANDOM % 20000 ))
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT WORLD_SIZE=4
for r in 0 1 2 3; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u main.py --output "$RUN" --save-every 20 --eval-every 10 &
done
wait
