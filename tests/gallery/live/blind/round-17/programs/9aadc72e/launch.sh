#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
PORT=$((20000 + RANDOM % 20000))
exec $PYTHON -m accelerate.commands.launch --multi_gpu --num_processes 3 --num_machines 1 --mixed_precision no --dynamo_backend no --main_process_port $PORT grpo.py
