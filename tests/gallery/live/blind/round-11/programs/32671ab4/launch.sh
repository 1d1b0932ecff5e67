#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TP_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo
exec $PYTHON run.py --trainers 3 --threads 2
