#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
read MASTER_PORT JUDGE_PORT < <($PYTHON -c "
import socket
a, b = socket.socket(), socket.socket()
a.bind(('127.0.0.1', 0)); b.bind(('127.0.0.1', 0))
print(a.getsockname()[1], b.getsockname()[1])")
export MASTER_PORT JUDGE_PORT
$PYTHON -u judge.py > /dev/null 2>&1 &
JUDGE=$!
trap 'kill $JUDGE 2>/dev/null' EXIT
pids=()
for r in 0 1 2; do
  RANK=$r LOCAL_RANK=$r $PYTHON -u train_rl.py &
  pids+=($!)
done
wait "${pids[@]}"
