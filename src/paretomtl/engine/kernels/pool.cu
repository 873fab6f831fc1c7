// Max pooling with windows that do not overlap, in float32: each thread has one window.
// Constants: KH, KW the window; H, W what is read; HO, WO what is made.

extern "C" __global__ void pool(const float* x, float* y, unsigned char* where, int total) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= total) return;
    const float* from = x + (long long)(at / (HO * WO)) * (H * W) + at / WO % HO * KH * W + at % WO * KW;
    float best = from[0];
    int best_at = 0;
#pragma unroll
    for (int i = 0; i < KH; ++i)
#pragma unroll
        for (int j = 0; j < KW; ++j) {
            const float value = from[i * W + j];
            if (value > best || value != value) {
                best = value;
                best_at = i * KW + j;
            }
        }
    y[at] = best;
    where[at] = best_at;
}

extern "C" __global__ void unpool(const float* gradient, const unsigned char* where, float* x, int total) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= total) return;
    float* to = x + (long long)(at / (HO * WO)) * (H * W) + at / WO % HO * KH * W + at % WO * KW;
    const float g = gradient[at];
    const int best_at = where[at];
#pragma unroll
    for (int i = 0; i < KH; ++i)
#pragma unroll
        for (int j = 0; j < KW; ++j) to[i * W + j] = best_at == i * KW + j ? g : 0.0f;
}
