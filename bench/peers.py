#!/usr/bin/env python3
"""Times other libraries' collectives on the tensors that `slabfence bench --peers` writes.

Operations, one process a GPU:
  gather  NCCL all_gather; torch symmetric memory (barrier, loads from the peers' buffers, barrier)
  reduce  NCCL all_to_all of the partial outputs alone; NCCL all_gather of the LSE, weighting in torch and reduce_scatter;
          torch symmetric memory (barrier, loads of the peers' partial outputs alone, barrier)

Every result is checked before it is timed: gathered and exchanged bytes exactly, combined outputs against f64. Times are
those of `slabfence bench`: graphs of --operations operations, events around every replay; and single operations that the
host waits for. NVLink multicast is not used. Lines of JSON go to standard output (see
cli/src/bench/peers.rs for their terms).
"""

import argparse
import json
import os
import re
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors import safe_open

WARM_UP = 20
BLOCKING = 200
# Replays behind one delay, and the delay: some 20 ms, in which the host launches them all.
BURST = 20
DELAY_CYCLES = 40_000_000
# Two roundings to bf16 and some of f32, as in `slabfence bench`; the unfused form rounds once more before it adds.
TOLERANCE = 1.0 / 64.0


class Inputs:
    """One batch size's tensors of all ranks, on one device."""

    def __init__(self, file, batch, ranks, device):
        self.batch = batch
        names = set(file.keys())

        def every_rank(name):
            wanted = [f"{name}.b{batch}.rank{rank}" for rank in range(ranks)]
            if not names.issuperset(wanted):
                return None
            return [file.get_tensor(name).to(device) for name in wanted]

        self.gather, self.reduce, self.lse = map(every_rank, ("gather", "reduce", "lse"))


def captured(operation, count):
    """A graph of `count` operations, and the stream that it was captured on."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            operation()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(count):
            operation()
    return graph


def in_graph(operation, count, replays):
    """Microseconds of one operation, by replay.

    Replays come in bursts behind a delay on the GPU, so that the host, which is slow to launch a graph of some libraries,
    is always ahead: what is timed is the GPU's work alone.
    """
    graph = captured(operation, count)
    times = []
    while len(times) < replays:
        burst = min(BURST, replays - len(times))
        events = [torch.cuda.Event(enable_timing=True) for _ in range(burst + 1)]
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda._sleep(DELAY_CYCLES)
        # The ranks' delays end apart: the first replay waits for the later one.
        graph.replay()
        for event in events[:-1]:
            event.record()
            graph.replay()
        events[-1].record()
        torch.cuda.synchronize()
        times += [a.elapsed_time(b) * 1e3 / count for a, b in zip(events, events[1:])]
    return times


def blocking(operation):
    """Microseconds from the call of one operation until the host knows that it has ended."""
    dist.barrier()
    torch.cuda.synchronize()
    times = []
    for run in range(WARM_UP + BLOCKING):
        begin = time.perf_counter()
        operation()
        torch.cuda.synchronize()
        if run >= WARM_UP:
            times.append((time.perf_counter() - begin) * 1e6)
    return times


def nccl_gather(inputs, me, ranks):
    own = inputs.gather[me]
    out = torch.full((ranks, *own.shape), float("nan"), dtype=own.dtype, device=own.device)

    def is_right():
        return all(torch.equal(out[rank], inputs.gather[rank]) for rank in range(ranks))

    return lambda: dist.all_gather_into_tensor(out, own), is_right


def share(partial, rank, ranks):
    """The heads of `rank`, head-major, in memory of their own."""
    heads = partial.shape[1] // ranks
    return partial[:, rank * heads : (rank + 1) * heads].contiguous()


def nccl_exchange(inputs, me, ranks):
    parts = torch.stack([share(inputs.reduce[me], rank, ranks) for rank in range(ranks)])
    out = torch.full_like(parts, float("nan"))

    def is_right():
        return all(
            torch.equal(out[rank], share(inputs.reduce[rank], me, ranks)) for rank in range(ranks)
        )

    return lambda: dist.all_to_all_single(out, parts), is_right


def combined(inputs, me, ranks):
    """What the LSE-weighted combination should be: `[batch, own heads, dim]` in f64."""
    lse = torch.stack(inputs.lse).double()
    weights = torch.softmax(lse, dim=0)
    total = sum(w.unsqueeze(-1) * x.double() for w, x in zip(weights, inputs.reduce))
    return share(total, me, ranks)


def nccl_combine(inputs, me, ranks):
    partial, lse = inputs.reduce[me], inputs.lse[me]
    batch, heads, dim = partial.shape
    every = torch.empty(ranks, batch, heads, dtype=lse.dtype, device=lse.device)
    out = torch.full(
        (heads // ranks, batch, dim), float("nan"), dtype=partial.dtype, device=partial.device
    )

    def operation():
        dist.all_gather_into_tensor(every, lse)
        weight = torch.exp(lse - torch.logsumexp(every, dim=0)).unsqueeze(-1)
        weighted = (partial.float() * weight).to(partial.dtype).movedim(1, 0).contiguous()
        dist.reduce_scatter_tensor(out, weighted)

    def is_right():
        expected = combined(inputs, me, ranks).movedim(1, 0)
        error = (out.double() - expected).abs() / expected.abs().clamp(min=1.0)
        return bool((error <= TOLERANCE).all())

    return operation, is_right


def symmetric(source, pick, out, expected):
    """Loads of `pick(rank's buffer)` into `out[rank]`, between barriers of torch's symmetric memory."""
    import torch.distributed._symmetric_memory as memory

    group = dist.group.WORLD
    shared = memory.empty(source.shape, dtype=source.dtype, device=source.device)
    handle = memory.rendezvous(shared, group.group_name)
    shared.copy_(source)
    ranks = range(handle.world_size)
    buffers = [handle.get_buffer(rank, source.shape, source.dtype) for rank in ranks]

    def operation():
        handle.barrier(channel=0)
        for rank in ranks:
            out[rank].copy_(pick(buffers[rank]))
        handle.barrier(channel=1)

    def is_right():
        return all(torch.equal(out[rank], expected[rank]) for rank in ranks)

    return operation, is_right


def symmetric_gather(inputs, me, ranks):
    own = inputs.gather[me]
    out = torch.full((ranks, *own.shape), float("nan"), dtype=own.dtype, device=own.device)
    return symmetric(own, lambda buffer: buffer, out, inputs.gather)


def symmetric_exchange(inputs, me, ranks):
    parts = torch.stack([share(inputs.reduce[me], rank, ranks) for rank in range(ranks)])
    out = torch.full_like(parts, float("nan"))
    expected = [share(partial, me, ranks) for partial in inputs.reduce]
    return symmetric(parts, lambda buffer: buffer[me], out, expected)


OPERATIONS = [
    ("gather", "NCCL all_gather", nccl_gather),
    ("gather", "torch symmetric memory", symmetric_gather),
    ("reduce", "NCCL all_to_all alone", nccl_exchange),
    ("reduce", "NCCL all_gather LSE + math + reduce_scatter", nccl_combine),
    ("reduce", "torch symmetric memory, exchange alone", symmetric_exchange),
]


def say(line):
    print(json.dumps(line), flush=True)


def agreed(value):
    """Every rank's value, by rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def measure(make, inputs, me, args):
    """What one library's operation comes to on all ranks, or why it cannot be had."""
    try:
        operation, is_right = make(inputs, me, args.ranks)
        operation()
        torch.cuda.synchronize()
        right = is_right()
        graph = in_graph(operation, args.operations, args.replays)
        right = right and is_right()
        found = {"right": right, "graph": graph, "blocking": blocking(operation)}
    except Exception as error:  # whatever a library throws: the others are still of interest
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    return agreed(found)


def rank_main(me, args, port):
    torch.cuda.set_device(me)
    device = torch.device("cuda", me)
    dist.init_process_group(
        "nccl",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=me,
        world_size=args.ranks,
        device_id=device,
    )
    if me == 0:
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        say({"note": f"torch {torch.__version__}, NCCL {nccl}, {torch.cuda.get_device_name(me)}"})
    with safe_open(args.inputs, framework="pt") as file:
        batches = sorted({int(b) for name in file.keys() for b in re.findall(r"\.b(\d+)\.", name)})
        unavailable = set()
        for batch in batches:
            inputs = Inputs(file, batch, args.ranks, device)
            for kind, name, make in OPERATIONS:
                if getattr(inputs, kind) is None or name in unavailable:
                    continue
                found = measure(make, inputs, me, args)
                errors = [rank["error"] for rank in found if "error" in rank]
                if errors:
                    unavailable.add(name)
                if me != 0:
                    continue
                if errors:
                    say({"note": f"{name} at batch {batch} cannot be had: {errors[0]}"})
                    continue
                say(
                    {
                        "operation": kind,
                        "name": name,
                        "batch": batch,
                        "right": all(rank["right"] for rank in found),
                        "graph": [rank["graph"] for rank in found],
                        "blocking": [rank["blocking"] for rank in found],
                    }
                )
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", required=True, help="safetensors file of slabfence bench")
    parser.add_argument("--ranks", type=int, required=True, help="one GPU each")
    parser.add_argument("--operations", type=int, default=40, help="operations in a graph")
    parser.add_argument("--replays", type=int, default=200, help="timed replays of a graph")
    args = parser.parse_args()
    if torch.cuda.device_count() < args.ranks:
        sys.exit(f"{args.ranks} ranks need {args.ranks} GPUs, there are {torch.cuda.device_count()}")
    # Multicast can put the GPUs of a host that others share out of service.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(rank_main, args=(args, port), nprocs=args.ranks)


if __name__ == "__main__":
    main()
