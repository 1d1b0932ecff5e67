#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000))
export FEATURE_PORT=$((MASTER_PORT + 1))
"$PYTHON" -u feature_service.py --port $FEATURE_PORT &
SVC=$!
for r in 0 1 2; do
  RANK=$r WORLD_SIZE=3 "$PYTHON" -u train.py --service 127.0.0.1:$FEATURE_PORT &
  PIDS="$PIDS $!"
done
wait $PIDS
kill $SVC
