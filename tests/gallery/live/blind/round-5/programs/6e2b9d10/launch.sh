#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export WORLD_SIZE=3
for ((i=0; i<WORLD_SIZE; i++)); do
  RANK=$i "$PYTHON" -u -m vid.main --clips 40 --channels 12 2>&1 | sed -u "s/^/[gpu$i] /" &
done
wait
