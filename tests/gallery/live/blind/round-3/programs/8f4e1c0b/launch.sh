#!/bin/bash
#SBATCH --job-name=autoenc
#SBATCH --nodes=1
#SBATCH --ntasks=3
#SBATCH --ntasks-per-node=4
# without srun (interactive node) the tasks are started here
export SLURM_JOB_ID=${SLURM_JOB_ID:-$((40000 + RANDOM))}
export SLURM_NNODES=1 SLURM_NTASKS=3 SLURM_NTASKS_PER_NODE=4
mkdir -p slurm_outfiles
for t in $(seq 0 $((SLURM_NTASKS - 1))); do
  SLURM_PROCID=$t SLURM_LOCALID=$t "$PYTHON" -u autoencoder.py > slurm_outfiles/autoencoder-$SLURM_JOB_ID-$t.out 2>&1 &
done
wait
