#!/bin/bash
export OMP_NUM_THREADS=1
HEAD=127.0.0.1:$((20000 + RANDOM % 20000))
mkdir -p logs
srun_like() {
    for N in 0 1; do
        SLURM_NODEID=$N bash node.sh "$HEAD" > logs/node$N.log 2>&1 &
        sleep 1
    done
    wait
}
srun_like
