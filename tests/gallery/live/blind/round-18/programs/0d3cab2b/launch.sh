#!/bin/bash
cd "$(dirname "$0")"
exec $PYTHON run_experiment.py
