#!/bin/bash
cd "$(dirname "$0")"
NTASKS=4
export OMP_WAIT_POLICY=active
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$(( 20000 + RANDOM % 20000 ))
export WORLD_SIZE=$NTASKS
export RUN_DIR=$(mktemp -d)

pids=()
for r in $(seq 0 $((NTASKS - 1))); do
  RANK=$r LOCAL_RANK=$r $PYTHON main.py --out "$RUN_DIR" &
  pids+=($!)
done
trap 'kill ${pids[@]} 2>/dev/null' TERM INT
wait
