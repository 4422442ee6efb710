"""Data-parallel training as PyTorch's tutorials have it, on CPUs: a ``DataLoader``, DDP over gloo, SGD.

Its options make it slow in one way each: batches that come slowly, much to compute, a rank that computes more,
a rank that stops. It prints what it does, and knows nothing of Paceline.
"""

import argparse
import os
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--examples", type=int, default=1000)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--workers", type=int, default=0, help="of the DataLoader")
parser.add_argument("--read", type=float, default=0.0, help="seconds for which a batch is waited for")
parser.add_argument("--rounds", type=int, default=1, help="forward passes of a step")
parser.add_argument("--slow-rank", type=int, default=-1, help="which rank makes more of them")
parser.add_argument("--slow-rounds", type=int, default=20, help="how many")
parser.add_argument("--stop-rank", type=int, default=-1, help="which rank stops")
parser.add_argument("--stop-step", type=int, default=30, help="before which step")
parser.add_argument("--stop-seconds", type=float, default=1e6, help="for how long")
parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps")
parser.add_argument("--evaluate", action="store_true", help="after each pass over the examples")
options = parser.parse_args()

rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
torch.manual_seed(7)
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
if world > 1:
    distributed.init_process_group("gloo")


class Rows(Dataset):
    """Rows of numbers, and what a fixed function makes of them."""

    def __init__(self, count, read_seconds):
        generator = torch.Generator().manual_seed(11)
        self.inputs = torch.randn(count, options.width, generator=generator)
        self.wanted = torch.tanh(self.inputs.sum(1, keepdim=True))
        self.read_seconds = read_seconds

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if self.read_seconds:
            time.sleep(self.read_seconds)
        return self.inputs[index], self.wanted[index]


rows = Rows(options.examples, options.read / options.batch)
sampler = DistributedSampler(rows, world, rank, shuffle=True, seed=3)
loader = DataLoader(rows, batch_size=options.batch, sampler=sampler, num_workers=options.workers)
tested = DataLoader(Rows(64, 0.0), batch_size=16)
layers = [torch.nn.Linear(options.width, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 1)]
model = torch.nn.Sequential(*layers)
network = DistributedDataParallel(model) if world > 1 else model
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
rounds = options.slow_rounds if rank == options.slow_rank else options.rounds

step = examples = passes = 0
begun = time.time()
while step < options.steps:
    sampler.set_epoch(passes)
    network.train()
    for inputs, wanted in loader:
        if rank == options.stop_rank and step == options.stop_step:
            print(f"rank {rank} stops before step {step + 1}", flush=True)
            time.sleep(options.stop_seconds)
        for _ in range(rounds - 1):  # What it computes more changes nothing.
            with torch.no_grad():
                model.eval()(inputs)
        network.train()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(network(inputs), wanted)
        loss.backward()
        optimizer.step()
        step, examples = step + 1, examples + len(inputs)
        print(f"step {step} examples {examples} loss {loss.item()!r}", flush=True)
        if options.pause:
            time.sleep(options.pause)
        if step == options.steps:
            break
    passes += 1
    if options.evaluate:
        network.eval()
        with torch.no_grad():
            errors = [torch.nn.functional.mse_loss(model(inputs), wanted) for inputs, wanted in tested]
        print(f"pass {passes} error {torch.stack(errors).mean().item()!r}", flush=True)
print(f"rate {step / (time.time() - begun)} steps a second", flush=True)
print(f"weights {[each.sum().item() for each in model.parameters()]}", flush=True)
if world > 1:
    distributed.barrier()
    distributed.destroy_process_group()
