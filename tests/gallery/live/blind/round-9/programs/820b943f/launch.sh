#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u main.py --nproc 2 --epochs 100000
