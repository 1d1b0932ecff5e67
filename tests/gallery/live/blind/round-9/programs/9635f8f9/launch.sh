#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON -u main.py --trainers 3 --server-threads 3 --eval-every 100
