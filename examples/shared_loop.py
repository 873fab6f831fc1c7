"""One subproblem on several processes: each gets its share of every batch, and all take the same steps.

torchrun --standalone --nproc-per-node 2 examples/shared_loop.py

Without torchrun, it trains the same model in one process.
"""

import os

import torch
import torch.distributed as dist
from torch import nn

import paretomtl as pm

if "RANK" in os.environ:
    dist.init_process_group()  # gloo on a CPU, NCCL on GPUs
rank, size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)

torch.manual_seed(0)  # the same model everywhere
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))  # not wrapped in DistributedDataParallel
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
vectors = pm.preferences.even(3, tasks=2)
weigher = pm.ParetoMTL().bind(vectors, index=1, total=600)
x = torch.linspace(-2, 2, 129)[:, None]

for _ in range(600):
    share = x.tensor_split(size)[rank]  # 65 and 64 samples
    losses = torch.stack([(model(share) - wanted).square().mean() for wanted in (share.sin(), share.cos())])
    optimizer.zero_grad()
    pm.backward(losses, weigher, model.parameters(), samples=len(share), distributed=True)
    optimizer.step()

if rank == 0:
    with torch.no_grad():
        found = [float((model(x) - wanted).square().mean()) for wanted in (x.sin(), x.cos())]
    print(f"{size} processes: losses {found[0]:.4f}, {found[1]:.4f}, {weigher.status}")
if dist.is_initialized():
    dist.destroy_process_group()
