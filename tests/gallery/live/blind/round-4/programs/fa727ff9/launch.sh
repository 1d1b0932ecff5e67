#!/bin/bash
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 ACCELERATE_USE_CPU=true HF_HOME=$PWD/.hf
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" make_corpus.py corpus
"$PYTHON" -m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --machine_rank 0 \
    --num_cpu_threads_per_process 1 --main_process_ip 127.0.0.1 --main_process_port $PORT --mixed_precision no \
    --dynamo_backend no run_legal_ner.py --corpus corpus > run.log 2>&1
