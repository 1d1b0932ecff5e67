#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
free_port() { $PYTHON -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
P0=$(free_port); P1=$(free_port)
$PYTHON embedd.py --port $P0 --segment-rows 100000 &
$PYTHON embedd.py --port $P1 --segment-rows 1500 &
export EMBED_REPLICAS=127.0.0.1:$P0,127.0.0.1:$P1
exec $PYTHON fit.py
