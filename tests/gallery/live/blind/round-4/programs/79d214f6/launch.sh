#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 ACCELERATE_USE_CPU=true HF_HOME=$PWD/.hf
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --machine_rank 0 \
    --main_process_ip 127.0.0.1 --main_process_port $PORT --mixed_precision no --dynamo_backend no \
    train_ocr.py > ocr.log 2>&1
