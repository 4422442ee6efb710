"""Data-parallel training as PyTorch's own tutorials have it: it knows nothing of Paceline."""

import os

import torch
from torch import distributed

distributed.init_process_group("gloo")  # by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
rank, world = distributed.get_rank(), distributed.get_world_size()
assert os.environ["LOCAL_RANK"] == "0"
assert "TF_CONFIG" not in os.environ

total = torch.full((1000,), float(rank + 1))
distributed.all_reduce(total)
assert total.eq(world * (world + 1) / 2).all()

torch.manual_seed(rank)  # each has examples of its own
wanted = torch.tensor([[1.0], [-2.0], [3.0]])
model = torch.nn.Linear(3, 1)
for parameter in model.parameters():
    distributed.broadcast(parameter.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    inputs = torch.randn(32, 3)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs @ wanted)
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
weights = [torch.empty(1, 3) for _ in range(world)]
distributed.all_gather(weights, model.weight.data)
assert all(each.equal(weights[0]) for each in weights), "all ranks hold the same model"
assert torch.allclose(weights[0], wanted.T, atol=1e-2)
print(f"rank {rank} of {world} done, loss {loss.item():.2g}", flush=True)  # noqa: T201
# So that its threads end before the interpreter does: one that lets go of a tensor later aborts the process.
distributed.destroy_process_group()
