from __future__ import annotations

from pathlib import Path

import pytest
import torch

from _helpers.emulate import emulate, needs_compiler

pytestmark = needs_compiler

KERNELS = """
extern "C" __global__ void sums(const double* x, double* out, int count, double factor) {
    extern __shared__ double parts[];
    const int thread = threadIdx.x, row = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    double sum = 0.0;
    for (int i = thread; i < count; i += blockDim.x) sum += factor * x[row * count + i];
    for (int bits = 16; bits; bits /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bits);
    if (thread % 32 == 0) parts[thread / 32] = sum;
    __syncthreads();
    sum = 0.0;
    for (int i = 0; i < blockDim.x / 32; ++i) sum += parts[(i + thread) % (blockDim.x / 32)];
    if (thread == LAST) out[row] = sum;
}
__global__ void stuck(double* x) {
    if (threadIdx.x < 3) __syncwarp();
    if (threadIdx.x > 3) __syncthreads();
}
__global__ void beyond(double* x) {
    extern __shared__ __align__(16) unsigned char bytes[];
    bytes[8 + threadIdx.x] = 0;
}
__global__ void racy(double* x) {
    extern __shared__ double values[];
    values[threadIdx.x] = threadIdx.x;
    x[threadIdx.x] = values[threadIdx.x ^ 1];
}
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.cu"
    path.write_text(KERNELS)
    return path


@pytest.mark.parametrize("block", [32, 512])
def test_a_kernel_gives_what_it_would_on_a_gpu(block: int, kernels: Path) -> None:
    x = torch.randn(2, 3, 2, 1000, dtype=torch.float64)
    out = torch.empty(2, 3, 2, dtype=torch.float64)
    emulate(kernels, "sums", {"LAST": block - 1}, (2, 3, 2), block, 8 * block // 32, [x, out, 1000, 2.0])
    torch.testing.assert_close(out, 2 * x.sum(-1))


def test_mistakes_are_found(kernels: Path) -> None:
    x = torch.zeros(32, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="wait for others that never come"):
        emulate(kernels, "stuck", {"LAST": 0}, (1, 1, 1), 32, 0, [x])
    with pytest.raises(RuntimeError, match="past the end of its shared memory"):
        emulate(kernels, "beyond", {"LAST": 0}, (1, 1, 1), 32, 32, [x])
    with pytest.raises(RuntimeError, match="the arguments are of kinds pi, the kernel takes p"):
        emulate(kernels, "stuck", {"LAST": 0}, (1, 1, 1), 32, 0, [x, 1])
    emulate(kernels, "racy", {"LAST": 0}, (2, 1, 1), 32, 256, [x])
    assert x.isnan().any(), "a barrier is missing"
