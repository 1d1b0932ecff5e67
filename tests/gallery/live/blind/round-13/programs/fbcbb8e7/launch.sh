#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE
exec $PYTHON train.py
