#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON launch.py --nproc 3 --stagger 4 train.py --epochs 40 --batch-size 32
