#!/bin/bash
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false
PORT=$((20000 + RANDOM % 20000))
"$PYTHON" -m accelerate.commands.launch --multi_gpu --num_processes 3 --num_machines 1 --machine_rank 0 \
    --main_process_ip 127.0.0.1 --main_process_port $PORT --mixed_precision no --dynamo_backend no \
    run_classification_no_trainer.py --num_epochs 20 --per_device_batch_size 8 --eval_steps 25
