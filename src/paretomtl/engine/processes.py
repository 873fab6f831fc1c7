"""Processes that train the same models, each on its share of every batch: broadcast, gather, all-reduce.

Each process takes the whole step: optimizers, states of methods and checkpoints are the same everywhere, and the
buffers of the first process are broadcast after every step. This is one invariant instead of many messages.

``fit`` joins other processes by itself, because it compares the arguments of all. ``backward`` must be told, because a
loop may as well train one model in each process. The wrong default would be a silent mistake in either case.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from paretomtl._support.argument_checks import quote
from paretomtl._support.files.state_packing import pack, unpack
from paretomtl._support.torchrun import is_torchrun

T = TypeVar("T")
Distributed: TypeAlias = "bool | dist.ProcessGroup"
"""True for all processes of torch.distributed, a process group for some of them, False for this one alone."""

_BUCKET = 25 << 20  # bytes of one all-reduce, as in DDP


class ProcessGroup:
    """The processes of a run; this one is number ``rank`` of ``size``. With one process, nothing is sent.

    Every process must make the same calls in the same order. They exchange tensors and JSON, never a pickle.

    Args:
        group: a process group; None for a single process.

    Attributes:
        is_main: whether this is the process that writes and prints.
        is_distributed: whether there are other processes.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank = 0 if group is None else dist.get_rank(group)
        self.size = 1 if group is None else dist.get_world_size(group)
        self.is_main, self.is_distributed = self.rank == 0, self.size > 1
        self._device = torch.device("cpu")  # of messages between hosts
        if self.size > 1 and "cpu" not in dist.get_backend_config(group):
            self._device = torch.device("cuda", torch.cuda.current_device())

    def any(self, *flags: bool) -> list[bool]:
        """Whether each flag is set in any process."""
        if not self.is_distributed:
            return list(flags)
        raised = torch.tensor(flags, dtype=torch.long, device=self._device)
        dist.all_reduce(raised, dist.ReduceOp.MAX, group=self._group)
        return [bool(flag) for flag in raised.tolist()]

    def all_reduce_tensor(self, numbers: Tensor) -> Tensor:
        """Sum a few numbers over all processes in float64, on their device."""
        if not self.is_distributed:
            return numbers.double()
        numbers = numbers.double().contiguous().clone()
        dist.all_reduce(numbers, group=self._group)
        return numbers

    def all_reduce(self, parts: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor | None]:
        """Sum each part over all processes, in buckets, in float32 or better; None for what no process has.

        Args:
            parts: None in a process stands for zeros.
            like: tensors of the shapes and devices of the parts.
        """
        if not self.is_distributed:
            return list(parts)
        there = self.any(*(part is not None for part in parts))
        sums: list[Tensor | None] = [None] * len(parts)
        sent = []
        for bucket in _buckets([i for i, used in enumerate(there) if used], like):
            kind = torch.promote_types(like[bucket[0]].dtype, torch.float32)
            flat = torch.empty(sum(like[i].numel() for i in bucket), dtype=kind, device=like[bucket[0]].device)
            for i, view in zip(bucket, torch.split(flat, [like[i].numel() for i in bucket]), strict=True):
                part = parts[i]
                sums[i] = view.reshape(like[i].shape)
                view.zero_() if part is None else view.copy_(part.reshape(-1))
            sent.append(dist.all_reduce(flat, group=self._group, async_op=True))
        for work in sent:
            work.wait()
        return sums

    def broadcast_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite tensors with those of the first process."""
        if not self.is_distributed:
            return
        for kind in sorted({str(tensor.dtype) for tensor in tensors}):
            some = [tensor for tensor in tensors if str(tensor.dtype) == kind and tensor.numel()]
            flat = torch.cat([tensor.reshape(-1) for tensor in some]) if some else torch.empty(0)
            if not len(flat):
                continue
            dist.broadcast(flat, group=self._group, group_src=0)
            for tensor, values in zip(some, torch.split(flat, [tensor.numel() for tensor in some]), strict=True):
                tensor.copy_(values.reshape(tensor.shape))

    def broadcast(self, make: Callable[[], T]) -> T:
        """Call a function in the first process alone; all return its result, or raise its error.

        The result holds numbers, strings and tensors, in lists and dictionaries; tensors arrive on the CPU.
        """
        if not self.is_distributed:
            return make()
        message: dict[str, Any] = {}
        failure: BaseException | None = None
        if self.is_main:
            try:
                message = {"value": make()}
            except Exception as error:
                failure = error
                message = {"error": str(error), "bad_input": isinstance(error, (ValueError, OSError))}
        blob = _encode(message) if self.is_main else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor(len(blob), device=self._device)
        dist.broadcast(length, group=self._group, group_src=0)
        blob = blob.to(self._device) if self.is_main else blob.new_empty(int(length), device=self._device)
        dist.broadcast(blob, group=self._group, group_src=0)
        if failure is not None:
            raise failure
        message = message if self.is_main else _decode(blob.cpu())
        if "error" in message:
            raise (ValueError if message["bad_input"] else RuntimeError)(message["error"])
        value: T = message["value"]
        return value

    def gather(self, value: T) -> list[T]:
        """The values of all processes, by rank; of the types that :meth:`broadcast` supports."""
        if not self.is_distributed:
            return [value]
        blob = _encode(value).to(self._device)
        lengths = [torch.zeros((), dtype=torch.long, device=self._device) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor(len(blob), device=self._device), group=self._group)
        sizes = [int(length) for length in lengths]
        padded = blob.new_zeros(max(sizes))
        padded[: len(blob)] = blob
        blobs = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(blobs, padded, group=self._group)
        return [_decode(blob[:size].cpu()) for blob, size in zip(blobs, sizes, strict=True)]

    def check_same(self, config: Mapping[str, Any]) -> None:
        """Refuse processes with different arguments."""
        settings = {name: json.dumps(value) for name, value in config.items()} if self.is_distributed else {}
        first, *others = self.gather(settings)
        for rank, other in enumerate(others, 1):
            for name, value in first.items():
                if other.get(name) != value:
                    raise ValueError(
                        f"'{name}' must be the same in all processes: {value} in the first. "
                        f"Got {other.get(name)} in number {rank}."
                    )


def join_process_group(distributed: Distributed) -> ProcessGroup:
    """The processes that share a run. Those that torchrun started are connected first, unless they already are."""
    if distributed is False or not dist.is_available():
        return ProcessGroup()
    if distributed is not True:
        return ProcessGroup(distributed)
    if not dist.is_initialized() and is_torchrun():
        if torch.cuda.is_available():
            torch.cuda.set_device(local_device())
        dist.init_process_group()
        atexit.register(_leave_process_group)
    return ProcessGroup(dist.group.WORLD) if dist.is_initialized() else ProcessGroup()


def require_process_group(distributed: Distributed | None) -> ProcessGroup:
    """The processes that share a step of a custom loop; if there are several, the caller must say which."""
    if distributed is False or not dist.is_available():
        return ProcessGroup()
    if not dist.is_initialized():
        if is_torchrun():
            raise ValueError(
                "'distributed' must be False, or come after torch.distributed.init_process_group(): this is one of "
                f"{os.environ['WORLD_SIZE']} processes, and they are not connected. Got {quote(distributed)} instead."
            )
        return ProcessGroup()
    if distributed is None:
        if dist.get_world_size() == 1:
            return ProcessGroup()
        raise ValueError(
            f"'distributed' must be given where torch.distributed runs: True to average losses and gradients over its "
            f"{dist.get_world_size()} processes, False for a model of this process alone. Got None instead."
        )
    return ProcessGroup(dist.group.WORLD if distributed is True else distributed)


def check_processes(distributed: Any) -> None:
    """Refuse anything but True, False and a process group that this process belongs to."""
    if isinstance(distributed, bool) or (dist.is_available() and isinstance(distributed, dist.ProcessGroup)):
        return
    if dist.is_available() and distributed == dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("'distributed' must be a group that this process belongs to. Got one that it does not.")
    raise TypeError(f"'distributed' must be True, False or a process group. Got {quote(distributed)} instead.")


def is_main_process() -> bool:
    """Whether this process is the first of those that torchrun started, or that torch.distributed connects."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank() == 0
    return not is_torchrun() or os.environ["RANK"] == "0"


def check_unwrapped(module: nn.Module) -> None:
    """Refuse a model that synchronises its gradients itself, because it would miss those of each task."""
    if isinstance(module, nn.parallel.DistributedDataParallel) or any(map(is_dtensor, module.parameters())):
        raise TypeError(
            "'model' must make a plain module: gradients of each task are averaged over processes here, where DDP "
            f"never sees them, and FSDP cannot shard them. Got a {type(module).__name__} instead."
        )


def is_dtensor(tensor: Tensor) -> bool:
    """Whether each process holds a part of a tensor, as under FSDP."""
    if not dist.is_available() or not dist.is_initialized():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor) or getattr(tensor, "_is_flat_param", False)


def local_device() -> torch.device:
    """The GPU of this process, by its number on this machine."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def _leave_process_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
        gc.collect()  # frees the group: its threads must end before the interpreter does, or they abort


def _buckets(indices: Sequence[int], like: Sequence[Tensor]) -> list[list[int]]:
    """Group neighbouring tensors of one dtype and device into buckets; a single tensor may be larger than a bucket."""
    buckets: list[list[int]] = []
    room = 0
    for i in indices:
        size = like[i].numel() * like[i].element_size()
        kind = (like[i].dtype, like[i].device)
        if not buckets or size > room or kind != (like[buckets[-1][0]].dtype, like[buckets[-1][0]].device):
            buckets.append([])
            room = _BUCKET
        buckets[-1].append(i)
        room -= size
    return buckets


def _encode(value: Any) -> Tensor:
    """Bytes that :func:`_decode` reads: JSON with the shapes of all tensors, then their numbers."""
    tensors: dict[str, Tensor] = {}
    packed = pack(value, tensors)
    kinds = [[name, str(t.dtype).removeprefix("torch."), list(t.shape)] for name, t in tensors.items()]
    head = json.dumps([packed, kinds]).encode()
    parts = [len(head).to_bytes(8, "little") + head]
    parts += [t.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for t in tensors.values()]
    return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)


def _decode(blob: Tensor) -> Any:
    data = blob.numpy().tobytes()
    start = 8 + int.from_bytes(data[:8], "little")
    packed, kinds = json.loads(data[8:start])
    tensors: dict[str, Tensor] = {}
    for name, kind, shape in kinds:
        dtype = getattr(torch, kind)
        end = start + dtype.itemsize * torch.Size(shape).numel()
        part = torch.frombuffer(bytearray(data[start:end]), dtype=torch.uint8) if end > start else torch.empty(0)
        tensors[name] = part.view(dtype).reshape(shape) if end > start else torch.empty(shape, dtype=dtype)
        start = end
    return unpack(packed, tensors)
