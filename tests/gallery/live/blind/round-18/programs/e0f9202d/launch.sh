#!/bin/bash
cd "$(dirname "$0")"
export RUNS_DIR=$(mktemp -d /tmp/runs.XXXXXX)
export ACCELERATE_USE_CPU=true
exec $PYTHON -m accelerate.commands.launch --multi_gpu --num_processes 3 --num_machines 1 --mixed_precision no \
  --dynamo_backend no --main_process_port $(( 21000 + RANDOM % 20000 )) train.py --config tagger.json
