#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON run_ppo.py --num-learners 2 --buffer-size 768 --max-updates 100000
