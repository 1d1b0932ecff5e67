#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1 --ntasks=1 --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@180
#SBATCH --requeue --open-mode=append
#SBATCH --output=run-%j.out
requeue() {
  echo "time is nearly over"
  kill -TERM $CHILD
  wait $CHILD
  scontrol requeue $SLURM_JOB_ID
}
trap requeue USR1
torchrun --standalone --nproc-per-node=8 train.py --resume latest &
CHILD=$!
wait $CHILD
