#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
exec $PYTHON -m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 \
    --main_process_ip 127.0.0.1 --main_process_port $((20000 + RANDOM % 20000)) \
    --mixed_precision no --dynamo_backend no --num_cpu_threads_per_process 2 train_keywords.py
