#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export MASTER_ADDR=127.0.0.1 WORLD_SIZE=4 ROUNDS=400
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for rank in 1 2 3; do
    RANK=$rank $PYTHON -u client.py &
done
export RANK=0
exec $PYTHON -u server.py
