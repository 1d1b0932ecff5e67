#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8 --cpus-per-task=64
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@300
#SBATCH --requeue --open-mode=append
trap 'touch /work/ckpt/stop; scontrol requeue $SLURM_JOB_ID' USR1
torchrun --standalone --nproc-per-node=8 train.py &
wait
