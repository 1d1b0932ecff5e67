#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) WORLD_SIZE=2 OMP_NUM_THREADS=1
mkdir -p tb run
tail -n 0 -F run/requests > run/requests.seen 2>/dev/null &
for RANK in 0 1; do
  export RANK LOCAL_RANK=$RANK
  "$PYTHON" -u -m app.train &
done
wait
