// Convolutions of small images with few channels, for a stack of models, in float32, stride 1.
//
// Libraries are made for many channels: with ten they leave a GPU mostly idle. Here a block keeps whole images and the
// filters of one model in shared memory, and each thread a tile of results in registers, so that arithmetic is the limit.
//
// Constants: CI, HI, WI   channels, height and width of what is read
//            CO, HO, WO   the same of what is made
//            KH, KW       the filters; PH, PW the padding of what is read
//            TO, TX       a thread's tile: channels and columns
//            THREADS      of a block; BLOCKS that should fit on a processor
//            IMAGES       at once in a block, of correlate; SLICES of the rows, of weight_gradient
//            SHARED_X     whether all models read the same images
//            FLIPPED      whether the filters are stored [CI, CO, KH, KW] and turned around, as for the input gradient

#define GROUPS ((CO + TO - 1) / TO)
#define SEGMENTS ((WO + TX - 1) / TX)
#define WHOLE (TX >= WO)  // a thread has whole rows: what lies outside of them needs no zeros, and no arithmetic
#define WINDOW (WHOLE ? WI : TX + KW - 1)
#define PADDED (WI + 2 * PW > SEGMENTS * TX + KW - 1 ? WI + 2 * PW : SEGMENTS * TX + KW - 1)
#define WIDE (WHOLE ? WI : PADDED)
#define LEFT (WHOLE ? 0 : PW)
#define INSIDE(t, j) (!WHOLE || ((t) + (j) - PW >= 0 && (t) + (j) - PW < WI))
#define AT(t, j) (WHOLE ? (INSIDE(t, j) ? (t) + (j) - PW : 0) : (t) + (j))
#define TAPS ((TO + 1) / 2 * 2)  // of a tile, so that two can be read at once
#define PIXELS (HO * WO)

struct alignas(8) Pair {
    float a, b;
};

struct alignas(16) Quad {
    float a, b, c, d;
};

// Images into shared memory, with zeros left and right; four numbers at once where they lie alike.
template <int ROWS, int WIDTH, int TO_WIDTH, int PAD>
__device__ __forceinline__ void load(const float* from, float* to) {
    if (TO_WIDTH == WIDTH && ROWS * WIDTH % 4 == 0) {
        for (int at = threadIdx.x; at < ROWS * WIDTH / 4; at += THREADS) ((Quad*)to)[at] = ((const Quad*)from)[at];
        return;
    }
    for (int at = threadIdx.x; at < ROWS * TO_WIDTH; at += THREADS) {
        const int column = at % TO_WIDTH - PAD;
        to[at] = column >= 0 && column < WIDTH ? from[at / TO_WIDTH * WIDTH + column] : 0.0f;
    }
}

#ifdef IMAGES
// y[k, n] = x[k, n] * w[k] + b[k]; blockIdx.x: images, blockIdx.y: model.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
correlate(const float* x, const float* w, const float* b, float* y, int count, int has_bias) {
    extern __shared__ Quad memory[];
    float* filters = (float*)memory;                                         // [CI, KH, KW, GROUPS, TAPS]
    float* images = filters + (CI * KH * KW * GROUPS * TAPS + 3) / 4 * 4;    // [IMAGES, CI, HI, WIDE]
    float* results = images;                                                 // [GROUPS, IMAGES, PIXELS], afterwards
    const long long model = blockIdx.y;
    for (int at = threadIdx.x; at < CI * KH * KW * GROUPS * TAPS; at += THREADS) {
        const int o = at % TAPS, group = at / TAPS % GROUPS, j = at / (TAPS * GROUPS) % KW;
        const int i = at / (TAPS * GROUPS * KW) % KH, c = at / (TAPS * GROUPS * KW * KH), made = group * TO + o;
        const int tap =
            FLIPPED ? ((c * CO + made) * KH + KH - 1 - i) * KW + KW - 1 - j : ((made * CI + c) * KH + i) * KW + j;
        filters[at] = o < TO && made < CO ? w[model * CO * CI * KH * KW + tap] : 0.0f;
    }
    const int segment = threadIdx.x % SEGMENTS;
    const int oy = threadIdx.x / SEGMENTS % HO;
    const int image = threadIdx.x / (SEGMENTS * HO) % IMAGES;
    const int group = threadIdx.x / (SEGMENTS * HO * IMAGES);
    const int first = blockIdx.x * IMAGES;
#pragma unroll
    for (int n = 0; n < IMAGES; ++n)
        if (first + n < count)
            load<CI * HI, WI, WIDE, LEFT>(
                x + (SHARED_X ? first + n : model * count + first + n) * (CI * HI * WI),
                images + n * CI * HI * WIDE);
    __syncthreads();

    const bool mine = group < GROUPS && first + image < count;
    float sums[TAPS][TX];
#pragma unroll
    for (int o = 0; o < TAPS; ++o)
#pragma unroll
        for (int t = 0; t < TX; ++t) sums[o][t] = 0.0f;
    if (mine) {
#pragma unroll 1
        for (int c = 0; c < CI; ++c) {
#pragma unroll 1
            for (int i = 0; i < KH; ++i) {
                const int row = oy + i - PH;
                if (PH > 0 && (row < 0 || row >= HI)) continue;
                const float* from = images + ((image * CI + c) * HI + row) * WIDE + segment * TX;
                const Pair* taps = (const Pair*)(filters + ((c * KH + i) * KW * GROUPS + group) * TAPS);
                float window[WINDOW];
#pragma unroll
                for (int t = 0; t < WINDOW; ++t) window[t] = from[t];
#pragma unroll
                for (int j = 0; j < KW; ++j)
#pragma unroll
                    for (int o = 0; o < TAPS; o += 2) {
                        const Pair two = taps[(j * GROUPS * TAPS + o) / 2];
#pragma unroll
                        for (int t = 0; t < TX; ++t)
                            if (INSIDE(t, j)) sums[o][t] += two.a * window[AT(t, j)];
                        if (o + 1 < TO) {
#pragma unroll
                            for (int t = 0; t < TX; ++t)
                                if (INSIDE(t, j)) sums[o + 1][t] += two.b * window[AT(t, j)];
                        }
                    }
            }
        }
    }

    // Through shared memory, so that neighbouring threads write neighbouring numbers.
#pragma unroll
    for (int o = 0; o < TO; ++o) {
        __syncthreads();
        if (mine && group * TO + o < CO) {
            const float bias = has_bias ? b[model * CO + group * TO + o] : 0.0f;
            float* to = results + (group * IMAGES + image) * PIXELS + oy * WO + segment * TX;
#pragma unroll
            for (int t = 0; t < TX; ++t)
                if (segment * TX + t < WO) to[t] = sums[o][t] + bias;
        }
        __syncthreads();
        const int step = PIXELS % 4 ? 1 : 4;
        for (int at = threadIdx.x; at < GROUPS * IMAGES * PIXELS / step; at += THREADS) {
            const int pixel = at % (PIXELS / step) * step, slot = at / (PIXELS / step);
            const int n = first + slot % IMAGES, made = slot / IMAGES * TO + o;
            if (n >= count || made >= CO) continue;
            float* to = y + ((model * count + n) * CO + made) * PIXELS + pixel;
            if (step == 4)
                *(Quad*)to = *(const Quad*)(results + slot * PIXELS + pixel);
            else
                *to = results[slot * PIXELS + pixel];
        }
    }
}
#endif

#ifdef SLICES
#define TASKS (GROUPS * CI * KH)
#define ROW (SEGMENTS * TX)  // TX is even
#define NUMBERS (CO * CI * KH * KW + CO)

// The gradients of filters and biases over `chunk` images: parts[model, split]; blockIdx.x: split, blockIdx.y: model.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
weight_gradient(const float* x, const float* gradient, float* parts, int count, int chunk) {
    extern __shared__ Quad memory[];
    float* above = (float*)memory;                              // [CO, HO, ROW]
    float* image = above + (CO * HO * ROW + 3) / 4 * 4;         // [CI, HI, WIDE]
    const long long model = blockIdx.y;
    const int first = blockIdx.x * chunk, task = threadIdx.x % TASKS, slice = threadIdx.x / TASKS;
    const int i = task % KH, c = task / KH % CI, group = task / (KH * CI);
    const bool mine = slice < SLICES;
    const int extra = threadIdx.x - SLICES * TASKS;  // the threads that are left over add up the biases
    float sums[TO][KW], bias[CO];
#pragma unroll
    for (int o = 0; o < TO; ++o)
#pragma unroll
        for (int j = 0; j < KW; ++j) sums[o][j] = 0.0f;
#pragma unroll
    for (int o = 0; o < CO; ++o) bias[o] = 0.0f;
    for (int n = first; n < first + chunk && n < count; ++n) {
        __syncthreads();
        load<CO * HO, WO, ROW, 0>(gradient + (model * count + n) * (CO * PIXELS), above);
        load<CI * HI, WI, WIDE, LEFT>(x + (SHARED_X ? n : model * count + n) * (CI * HI * WI), image);
        __syncthreads();
        if (extra >= 0)
            for (int at = extra; at < HO * ROW; at += THREADS - SLICES * TASKS)
#pragma unroll
                for (int o = 0; o < CO; ++o) bias[o] += above[o * HO * ROW + at];
        for (int oy = slice; mine && oy < HO; oy += SLICES) {
            const int row = oy + i - PH;
            if (PH > 0 && (row < 0 || row >= HI)) continue;
#pragma unroll 1
            for (int segment = 0; segment < SEGMENTS; ++segment) {
                const float* from = image + (c * HI + row) * WIDE + segment * TX;
                float window[WINDOW];
#pragma unroll
                for (int t = 0; t < WINDOW; ++t) window[t] = from[t];
#pragma unroll
                for (int o = 0; o < TO; ++o) {
                    const int channel = group * TO + o;
                    if (GROUPS * TO > CO && channel >= CO) continue;
                    const Pair* down = (const Pair*)(above + (channel * HO + oy) * ROW + segment * TX);
#pragma unroll
                    for (int t = 0; t < TX; t += 2) {
                        const Pair two = down[t / 2];
#pragma unroll
                        for (int j = 0; j < KW; ++j)
                            if (INSIDE(t, j)) sums[o][j] += two.a * window[AT(t, j)];
#pragma unroll
                        for (int j = 0; j < KW; ++j)
                            if (INSIDE(t + 1, j)) sums[o][j] += two.b * window[AT(t + 1, j)];
                    }
                }
            }
        }
    }

    // The slices are added up in their order, so that the same input always gives the same bits.
    float* totals = (float*)memory;
    for (int turn = 0; turn < SLICES; ++turn) {
        __syncthreads();
        if (slice != turn) continue;
#pragma unroll
        for (int o = 0; o < TO; ++o) {
            const int channel = group * TO + o;
            if (channel >= CO) continue;
#pragma unroll
            for (int j = 0; j < KW; ++j) {
                float* to = totals + ((channel * CI + c) * KH + i) * KW + j;
                *to = turn ? *to + sums[o][j] : sums[o][j];
            }
        }
    }
    float* shares = totals + NUMBERS;  // [CO, left over]
    if (extra >= 0)
#pragma unroll
        for (int o = 0; o < CO; ++o) shares[o * (THREADS - SLICES * TASKS) + extra] = bias[o];
    __syncthreads();
    if (threadIdx.x < CO) {
        float total = 0.0f;
        for (int at = 0; at < THREADS - SLICES * TASKS; ++at)
            total += shares[threadIdx.x * (THREADS - SLICES * TASKS) + at];
        totals[CO * CI * KH * KW + threadIdx.x] = total;
    }
    __syncthreads();
    for (int at = threadIdx.x; at < NUMBERS; at += THREADS)
        parts[(model * gridDim.x + blockIdx.x) * NUMBERS + at] = totals[at];
}
#endif
