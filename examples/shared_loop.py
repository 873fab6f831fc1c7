"""One model on several processes: each process gets its share of every batch.

All processes average losses and gradients, and take the same steps. With torchrun,
the loop below trains the same three models as in one process.

torchrun --standalone --nproc-per-node 2 examples/shared_loop.py
python examples/shared_loop.py
"""

import gc
import os

import torch
import torch.distributed as dist
from torch import nn

import paretomtl as pm

STEPS = 400
x = torch.linspace(-2, 2, 129)[:, None]


def measure(model, x):
    curve = model(x)
    return torch.stack([(curve - y).square().mean() for y in (x.sin(), x.cos())])


def train(vectors, k, rank, size):
    torch.manual_seed(k)  # the same model in every process
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))  # no DDP
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    weigher = pm.ParetoMTL().bind(vectors, index=k, total=STEPS)
    share = x.tensor_split(size)[rank]  # of two processes: 65 and 64 samples
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses = measure(model, share)
        pm.backward(
            losses, weigher, model.parameters(), samples=len(share), distributed=True
        )
        optimizer.step()
    return measure(model, x).tolist()


def main():
    if "RANK" in os.environ:
        dist.init_process_group()  # gloo on a CPU, NCCL on GPUs
    shared = dist.is_initialized()
    rank, size = (dist.get_rank(), dist.get_world_size()) if shared else (0, 1)
    vectors = pm.preferences.even(3, tasks=2)
    front = pm.Front.from_losses(
        {"train": [train(vectors, k, rank, size) for k in range(3)]},
        tasks=["sine", "cosine"],
        preferences=vectors,
        reading="direction",
        problem="one curve",
        method="pareto-mtl",
    )
    if rank == 0:
        print("processes:", size)
        print(front)
    if shared:
        dist.destroy_process_group()
        gc.collect()  # its threads must end before the interpreter does
    return front


if __name__ == "__main__":
    main()
