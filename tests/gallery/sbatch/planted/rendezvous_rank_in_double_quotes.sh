#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=02:00:00
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
LAUNCHER="python -m torch.distributed.run --nnodes $SLURM_NNODES --nproc_per_node 8 --node_rank $SLURM_PROCID --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
srun --jobid $SLURM_JOBID bash -c "$LAUNCHER train.py --lr 3e-4" 2>&1 | tee train.log
