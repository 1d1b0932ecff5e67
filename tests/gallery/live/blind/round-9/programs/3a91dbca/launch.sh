#!/bin/bash
cd "$(dirname "$0")"
export MASTER_PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export OMP_NUM_THREADS=1
exec $PYTHON -u fit.py --devices 2 --max-epochs 500
