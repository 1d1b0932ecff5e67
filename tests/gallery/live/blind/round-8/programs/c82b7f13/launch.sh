#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
for r in 0 1 2 3; do
  "$PYTHON" -u run.py --rank $r --world 4 &
done
wait
