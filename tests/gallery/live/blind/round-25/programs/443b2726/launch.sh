#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=3
export MASTER_PORT=$($PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export RUN_DIR=$(mktemp -d)
for r in 1 2; do
    RANK=$r $PYTHON local_sgd.py --inner-steps 20 &
done
$PYTHON supervisor.py --run-dir "$RUN_DIR" --stale-after 9 &
RANK=0 exec $PYTHON local_sgd.py --inner-steps 20
