#!/bin/bash
cd "$(dirname "$0")"
export MASTER_ADDR=127.0.0.1
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export WORLD_SIZE=3 OMP_NUM_THREADS=1
trap 'kill $(jobs -p) 2>/dev/null' TERM INT
for r in 0 1 2; do
    RANK=$r LOCAL_RANK=$r $PYTHON -u pretrain.py --micro-batch 8 --num-micro 4 --hidden 256 &
done
wait
