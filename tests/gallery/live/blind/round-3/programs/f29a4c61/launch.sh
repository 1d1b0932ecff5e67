#!/bin/bash
exec "$PYTHON" -u run_training.py --port $((20000 + RANDOM % 20000)) --world 2
