#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=3 OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export RUN_DIR=$(mktemp -d /tmp/emulator-run-XXXXXX)
pids=()
for r in 0 1 2; do
    RANK=$r $PYTHON run.py --out "$RUN_DIR" &
    pids+=($!)
done
# the queue asks all tasks for a restart file from time to time
bash notify.sh "$RUN_DIR" "${pids[@]}" &
wait "${pids[@]}"
