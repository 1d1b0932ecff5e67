#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
PORT=$($PYTHON -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
exec $PYTHON -m lightning.fabric.cli --accelerator cpu --strategy ddp --devices 3 --main-port $PORT sft.py
