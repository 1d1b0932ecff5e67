#!/bin/bash
# interactive re-run of job 771203 on the allocation: sbatch header below
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --job-name=mace-mp
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
export SLURM_JOB_ID=771203 SLURM_NNODES=1 SLURM_NTASKS=4 SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NODELIST=localhost SLURM_NODEID=0
export MASTER_PORT=$((20000 + RANDOM % 20000))
NPROC=3
for t in $(seq 0 $((NPROC - 1))); do
  SLURM_PROCID=$t SLURM_LOCALID=$t SLURM_STEP_NUM_TASKS=$NPROC "$PYTHON" run_train.py > slurm-771203_$t.out 2>&1 &
done
wait
