#!/bin/bash
export OMP_NUM_THREADS=1
export MASTER_PORT=$((20000 + RANDOM % 20000)) REWARD_PORT=$((40000 + RANDOM % 9000))
exec "$PYTHON" -u ppo.py --world-size 2 --updates 3000
