#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON launch.py --nproc 3 train.py --epochs 400
