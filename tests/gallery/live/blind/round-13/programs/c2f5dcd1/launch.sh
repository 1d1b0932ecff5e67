#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
exec $PYTHON -m accelerate.commands.launch --config_file two.yaml --main_process_port $((20000 + RANDOM % 20000)) train.py
