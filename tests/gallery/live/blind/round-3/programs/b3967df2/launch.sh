#!/bin/bash
export OMP_NUM_THREADS=1
exec "$PYTHON" mpi_like.py -n 3 -- "$PYTHON" -u train_regressor.py --hidden 64
