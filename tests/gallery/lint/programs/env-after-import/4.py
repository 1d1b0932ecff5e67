import os

import torch

torch.cuda.set_device(0)
x = torch.zeros(1).cuda()
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
print(x)
