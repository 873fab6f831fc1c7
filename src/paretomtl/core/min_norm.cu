// The dual in one launch, one warp for each problem. min_norm_solver.cu comes before this text.
//
// Defined before both: TASKS (m), DOUBLE_GRAMIAN and DOUBLE_ROWS (1: double, 0: float).

#if DOUBLE_GRAMIAN
typedef double Real;
#else
typedef float Real;
#endif
#if DOUBLE_ROWS
typedef double Row;
#else
typedef float Row;
#endif

struct Given {
    const Row* rows;  // null: the points are the gradients themselves

    __device__ __forceinline__ int task(int i) const { return rows ? -1 : i; }
    __device__ __forceinline__ double entry(int i, int d) const { return double(rows[i * TASKS + d]); }
};

// Strides are those from problem to problem; 0 shares one among all. Without rows (row_stride −1) the points are the
// gradients themselves, without a mask (mask_stride −1) all are allowed; the pointers are then not read.
// One block on a processor is enough: so the compiler may use all registers, and spills none.
extern "C" __global__ void __launch_bounds__(32, 1)
    min_norm(const Real* gramian, const Row* all_rows, const unsigned char* all_allowed, Real* weights,
             Real* combination, Real* squared_norm, Real* relative_gap, long long* status, int count,
             int gramian_stride, int row_stride, int mask_stride, double zero_tolerance) {
    extern __shared__ double shared[];
    const Memory memory(shared, count);
    const int lane = threadIdx.x;
    const long long problem = blockIdx.x;
    for (int e = lane; e < TASKS * TASKS; e += 32) memory.gramian(e) = double(gramian[problem * gramian_stride + e]);
    for (int i = lane; i < count; i += 32)
        memory.allow(i, mask_stride < 0 || all_allowed[problem * mask_stride + i]);

    Found found;
    solve(memory, Given{row_stride < 0 ? nullptr : all_rows + problem * row_stride}, count, zero_tolerance, found);

    for (int i = lane; i < count; i += 32) {
        double weight = 0.0;
        EACH for (int s = 0; s < SLOTS; ++s) weight += found.index[s] == i ? found.shares[s] : 0.0;
        weights[problem * count + i] = Real(weight);
    }
    if (lane < TASKS) combination[problem * TASKS + lane] = Real(found.combination);
    if (lane == 0) {
        squared_norm[problem] = Real(found.squared_norm);
        relative_gap[problem] = Real(found.gap);
        status[problem] = found.status;
    }
}
