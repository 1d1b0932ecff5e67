#!/bin/bash -l
#SBATCH --partition=gpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=8
#SBATCH --mem=0
#SBATCH --time=0-02:00:00
#SBATCH --signal=SIGUSR1@90
conda activate /work/conda/envs/pl
export NCCL_SOCKET_IFNAME=^docker0,lo
export PYTHONFAULTHANDLER=1
srun python3 lightning_train.py fit --trainer.num_nodes 4
