#!/bin/bash
#SBATCH --job-name=ddp_multi
#SBATCH --partition=gpu
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=10
#SBATCH --hint=nomultithread
#SBATCH --time=00:10:00
#SBATCH --signal=USR1@120
#SBATCH --output=ddp_%j.out
#SBATCH --error=ddp_%j.err

module purge
conda deactivate
module load pytorch-gpu/py3/2.4
set -x
srun python -u handles.py --batch-size 512
