"""Your own training loop: `pm.backward` in place of `loss.backward()`, once per preference.

python examples/own_loop.py
"""

import torch
from torch import nn

import paretomtl as pm

torch.manual_seed(0)
x = torch.linspace(-2, 2, 128)[:, None]
targets = [x.sin(), x.cos()]
vectors = pm.preferences.even(3, tasks=2)
steps = 600

for k, vector in enumerate(vectors):
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    weigher = pm.ParetoMTL().bind(vectors, index=k, total=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        losses = torch.stack([(model(x) - y).square().mean() for y in targets])
        pm.backward(losses, weigher, model.parameters())
        optimizer.step()
    shown = ", ".join(f"{loss:.3f}" for loss in losses.tolist())
    print(f"direction ({vector[0]:.2f}, {vector[1]:.2f}): losses {shown}, {weigher.status}")
