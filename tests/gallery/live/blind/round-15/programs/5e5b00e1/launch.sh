#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON run_local.py --nproc 3 -- --buffer 700000
