#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=4
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for peer in 1 2 3; do
    RANK=$peer $PYTHON peer.py --rounds 20000 &
done
export RANK=0
exec $PYTHON peer.py --rounds 20000
