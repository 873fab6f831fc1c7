// The dual of one problem by one warp: what _factor, _lawson_hanson and _best_iterate of _min_norm.py do, in the same
// order and with the same tolerances. See there for the mathematics. All lanes hold the same support, its pseudo-inverse
// and every vector of m numbers, and only the points are divided among them: for few tasks all of this stays in
// registers, and no lane waits for another but in the two reductions of a pivot.
//
// Part of every kernel that solves it. Defined before this text: TASKS (m).

#define SLOTS (TASKS + 2)
#define DIMS (TASKS + 1)
#define ALL 0xffffffffu
#define INFINITE 1.7976931348623157e308
#define PIVOT_TOLERANCE 2.3e-16
#define ENTER_TOLERANCE 4e-15
#define RATIO_TOLERANCE 1e-12
#define TINY 1e-300
#define MOST_PIVOTS 24
#define INEXACT_GAP 1e-6

// Unrolled loops keep arrays in registers. Past four tasks they do not fit there: then only inner loops are unrolled, so
// that their loads overlap.
#define INNER _Pragma("unroll")
#if TASKS <= 4
#define EACH _Pragma("unroll")
#else
#define EACH _Pragma("unroll 1")
#endif

__device__ __forceinline__ bool is_finite(double x) { return fabs(x) <= INFINITE; }

__device__ __forceinline__ double warp_max(double value) {
#pragma unroll
    for (int bits = 16; bits; bits /= 2) value = fmax(value, __shfl_xor_sync(ALL, value, bits));
    return value;
}

__device__ __forceinline__ double warp_sum(double value) {
#pragma unroll
    for (int bits = 16; bits; bits /= 2) value += __shfl_xor_sync(ALL, value, bits);
    return value;
}

__device__ __forceinline__ double warp_min(double value) { return -warp_max(-value); }

// factor with C = factor factorᵀ, from C in rest, which is working space. Leaves the square roots of the diagonal in scale.
__device__ __forceinline__ void factorise(double* factor, double* rest, double* scale, int lane) {
    if (lane < TASKS) scale[lane] = sqrt(fmax(rest[lane * DIMS], 0.0));
    __syncwarp();
    for (int e = lane; e < TASKS * TASKS; e += 32) {
        const double row = scale[e / TASKS], column = scale[e % TASKS];
        rest[e] = rest[e] * (row > 0.0 ? 1.0 / row : 0.0) * (column > 0.0 ? 1.0 / column : 0.0);
    }
    for (int k = 0; k < TASKS; ++k) {
        __syncwarp();
        int index = 0;
        double pivot = rest[0];
        for (int i = 1; i < TASKS; ++i) {
            const double other = rest[i * DIMS];
            if (other > pivot) {
                pivot = other;
                index = i;
            }
        }
        const double root = pivot > TASKS * PIVOT_TOLERANCE ? 1.0 / sqrt(fmax(pivot, TINY)) : 0.0;
        double column = 0.0;
        if (lane < TASKS) {
            column = rest[lane * TASKS + index] * root;
            factor[lane * TASKS + k] = column;
        }
        __syncwarp();
        for (int e = lane; e < TASKS * TASKS; e += 32)
            rest[e] -= factor[e / TASKS * TASKS + k] * factor[e % TASKS * TASKS + k];
    }
    __syncwarp();
    for (int e = lane; e < TASKS * TASKS; e += 32) factor[e] *= scale[e / TASKS];
    __syncwarp();
}

// out = vector − matrixᵀ coefficients
__device__ __forceinline__ void subtract(const double (&matrix)[SLOTS][DIMS], const double (&coefficients)[SLOTS],
                                         const double (&vector)[DIMS], double (&out)[DIMS]) {
    EACH for (int d = 0; d < DIMS; ++d) {
        double sum = vector[d];
        INNER for (int s = 0; s < SLOTS; ++s) sum -= matrix[s][d] * coefficients[s];
        out[d] = sum;
    }
}

// out = matrix vector
__device__ __forceinline__ void multiply(const double (&matrix)[SLOTS][DIMS], const double (&vector)[DIMS],
                                         double (&out)[SLOTS]) {
    EACH for (int s = 0; s < SLOTS; ++s) {
        double sum = 0.0;
        INNER for (int d = 0; d < DIMS; ++d) sum += matrix[s][d] * vector[d];
        out[s] = sum;
    }
}

// Shared memory for N points. Before a problem is solved, lifted holds its Gramian and norms say which points are allowed.
struct Memory {
    double* factor;   // [m][m]
    double* scale;    // [m]
    double* norms;    // [N], of the lifted points
    double* lengths;  // [N], of the points
    double* terms;    // [N], the lengths of the terms that make a point, together
    double* points;   // [m][N]
    double* lifted;   // [m + 1][N], at least [m][m]

    __device__ __forceinline__ Memory(double* begin, int count) {
        factor = begin;
        scale = factor + TASKS * TASKS;
        norms = scale + TASKS;
        lengths = norms + count;
        terms = lengths + count;
        points = terms + count;
        lifted = points + TASKS * count;
    }
    __device__ __forceinline__ double& gramian(int e) const { return lifted[e]; }
    __device__ __forceinline__ void allow(int i, bool allowed) const { norms[i] = allowed ? 0.0 : -1.0; }
    __device__ __forceinline__ bool allowed(int i) const { return !(norms[i] < 0.0); }  // a norm may be NaN
};

enum Solve { SOLVED, ZERO, FAILED, INEXACT };

struct Found {
    double shares[SLOTS];  // of the points of the support
    int index[SLOTS];      // which points these are; −1: none
    double combination;    // α_i, in lane i
    double squared_norm, gap;
    int status;  // a Solve
};

// Rows has task(i), the task whose gradient point i is, −1: of none; and entry(i, d) of the row of any other point. All
// lanes find the same.
template <class Rows>
__device__ __forceinline__ void solve(const Memory& memory, const Rows& rows, int count, double zero_tolerance,
                                      Found& found) {
    const int lane = threadIdx.x % 32;
    double* const factor = memory.factor;
    double* const scale = memory.scale;
    double* const norms = memory.norms;
    double* const lengths = memory.lengths;
    double* const points = memory.points;
    double* const lifted = memory.lifted;
    double(&best_shares)[SLOTS] = found.shares;
    int(&best_index)[SLOTS] = found.index;
    EACH for (int s = 0; s < SLOTS; ++s) {
        best_index[s] = -1;
        best_shares[s] = 0.0;
    }
    found.combination = found.squared_norm = found.gap = 0.0;
    found.status = FAILED;

    __syncwarp();
    bool finite = true, any = false;
    for (int e = lane; e < TASKS * TASKS; e += 32) finite = finite && is_finite(memory.gramian(e));
    for (int i = lane; i < count; i += 32) {
        if (!memory.allowed(i)) continue;
        any = true;
        if (rows.task(i) < 0)
            for (int d = 0; d < TASKS; ++d) finite = finite && is_finite(rows.entry(i, d));
    }
    if (!__all_sync(ALL, finite) || !__any_sync(ALL, any)) return;

    factorise(factor, lifted, scale, lane);

    double longest = 0.0, shortest = INFINITE;
    for (int i = lane; i < count; i += 32) {
        const bool here = memory.allowed(i);
        const int task = rows.task(i);
        double square = 0.0, terms = here && task >= 0 ? scale[task] : 0.0;
        for (int d = 0; d < TASKS; ++d) {
            double sum = 0.0;
            if (here && task < 0) terms += fabs(rows.entry(i, d)) * scale[d];
            if (here && task >= 0)
                sum = factor[task * TASKS + d];
            else if (here)
                for (int k = 0; k < TASKS; ++k) sum += rows.entry(i, k) * factor[k * TASKS + d];
            points[d * count + i] = sum;
            square += sum * sum;
        }
        lengths[i] = sqrt(square);
        memory.terms[i] = terms;
        longest = fmax(longest, lengths[i]);
        if (here) shortest = fmin(shortest, lengths[i]);
    }
    longest = warp_max(longest);
    shortest = warp_min(shortest);
    // As high as the shortest point is long: from higher up, points that are much shorter would look the same.
    const double height = shortest > 0.0 ? shortest : longest > 0.0 ? longest : 1.0;
    for (int i = lane; i < count; i += 32) {
        const bool here = memory.allowed(i);
        const double norm = sqrt(lengths[i] * lengths[i] + height * height), inverse = here ? 1.0 / norm : 0.0;
        norms[i] = here ? norm : 0.0;
        for (int d = 0; d < TASKS; ++d) lifted[d * count + i] = points[d * count + i] * inverse;
        lifted[TASKS * count + i] = height * inverse;
    }
    __syncwarp();

    double support[SLOTS][DIMS], inverse[SLOTS][DIMS], target[DIMS];
    int index[SLOTS];
    EACH for (int s = 0; s < SLOTS; ++s) {
        INNER for (int d = 0; d < DIMS; ++d) support[s][d] = inverse[s][d] = 0.0;
        index[s] = -1;
    }
    EACH for (int d = 0; d < DIMS; ++d) target[d] = d == TASKS ? 1.0 : 0.0;
    const double threshold = sqrt(zero_tolerance);  // a norm of this much of its terms is zero
    double best_gap = INFINITE;
    int entering = 0;
    bool pending = false;

    for (int pivots = 0;; ++pivots) {
        // The iterate as it is: its point of the hull, and the residual that says which point should enter.
        double coefficients[SLOTS], shares[SLOTS], residual[DIMS], x[TASKS];
        double total = 0.0, terms = 0.0, square = 0.0, largest = 0.0;
        EACH for (int s = 0; s < SLOTS; ++s) {
            coefficients[s] = inverse[s][TASKS];
            largest = fmax(largest, coefficients[s]);
        }
        subtract(support, coefficients, target, residual);
        // Refined once: of points nearly parallel, such as constraints that one long gradient dominates, the inverse
        // knows the coefficients apart only roughly.
        multiply(inverse, residual, shares);
        EACH for (int s = 0; s < SLOTS; ++s) {
            shares[s] = index[s] < 0 ? 0.0 : fmax(coefficients[s] + shares[s], 0.0) / norms[index[s]];
            total += shares[s];
        }
        EACH for (int d = 0; d < TASKS; ++d) x[d] = 0.0;
        EACH for (int s = 0; s < SLOTS; ++s) {
            shares[s] /= fmax(total, TINY);
            terms += index[s] < 0 ? 0.0 : shares[s] * memory.terms[index[s]];
            INNER for (int d = 0; d < TASKS; ++d) x[d] += index[s] < 0 ? 0.0 : shares[s] * points[d * count + index[s]];
        }
        EACH for (int d = 0; d < TASKS; ++d) square += x[d] * x[d];

        double steepest = -INFINITE, worst = 0.0;
        int first = 0;
        for (int i = lane; i < count; i += 32) {
            double slope = lifted[TASKS * count + i] * residual[TASKS], product = 0.0;
            INNER for (int d = 0; d < TASKS; ++d) {
                slope += lifted[d * count + i] * residual[d];
                product += points[d * count + i] * x[d];
            }
            if (slope > steepest) {
                steepest = slope;
                first = i;
            }
            if (norms[i] > 0.0) worst = fmax(worst, (square - product) / fmax(lengths[i], TINY));
        }
#pragma unroll
        for (int bits = 16; bits; bits /= 2) {
            const double slope = __shfl_xor_sync(ALL, steepest, bits);
            const int other = __shfl_xor_sync(ALL, first, bits);
            worst = fmax(worst, __shfl_xor_sync(ALL, worst, bits));
            if (slope > steepest || (slope == steepest && other < first)) {
                steepest = slope;
                first = other;
            }
        }

        // The iterate of least gap is kept: late pivots are rounding noise and may spoil a good answer.
        const double gap = worst / fmax(fmax(sqrt(square), threshold * terms), TINY);
        if (total > 0.0 && is_finite(square) && gap < best_gap) {
            best_gap = gap;
            EACH for (int s = 0; s < SLOTS; ++s) {
                best_shares[s] = shares[s];
                best_index[s] = index[s];
            }
        }
        if (pivots == MOST_PIVOTS * (TASKS + 1)) break;

        double point[DIMS], gain = 0.0;
        if (pending) {
            EACH for (int d = 0; d < DIMS; ++d) gain += lifted[d * count + entering] * residual[d];
            pending = gain > ENTER_TOLERANCE;
        }
        if (!pending) {
            entering = first;
            gain = steepest;
        }
        if (!(gain > ENTER_TOLERANCE)) break;
        EACH for (int d = 0; d < DIMS; ++d) point[d] = lifted[d * count + entering];

        double share[SLOTS], correction[SLOTS], left[DIMS], left_squared = 0.0;
        multiply(inverse, point, share);
        subtract(support, share, point, left);
        // A second pass of orthogonalisation: without it tasks of very different scales lose two digits.
        multiply(inverse, left, correction);
        EACH for (int s = 0; s < SLOTS; ++s) share[s] += correction[s];
        subtract(support, correction, left, left);
        EACH for (int d = 0; d < DIMS; ++d) left_squared += left[d] * left[d];
        left_squared = fmax(left_squared, TINY);

        // The entering point pushes others out of the support: the first one to reach zero is dropped before it enters.
        double step = INFINITE, along[DIMS];
        int here = 0;
        EACH for (int s = 0; s < SLOTS; ++s) {
            const double ratio = share[s] > RATIO_TOLERANCE ? coefficients[s] / share[s] : INFINITE;
            if (ratio < step) {
                step = ratio;
                here = s;
            }
        }
        // In a tie, which is told only up to rounding, it is dropped: else it would stay with a negative coefficient.
        const bool drop = step * left_squared < gain + ENTER_TOLERANCE * largest;
        if (drop) {
            EACH for (int d = 0; d < DIMS; ++d) {
                double value = 0.0;
                INNER for (int s = 0; s < SLOTS; ++s) value = s == here ? inverse[s][d] : value;
                along[d] = value;
            }
            multiply(inverse, along, share);
            double overlap = 0.0;
            EACH for (int s = 0; s < SLOTS; ++s) overlap = s == here ? share[s] : overlap;
            EACH for (int s = 0; s < SLOTS; ++s) share[s] /= fmax(overlap, TINY);
        } else {
            EACH for (int d = 0; d < DIMS; ++d) along[d] = left[d] / left_squared;
            here = -1;
            EACH for (int s = 0; s < SLOTS; ++s) here = here < 0 && index[s] < 0 ? s : here;
            if (here < 0) break;  // no slot is free: only where rounding made dependent points look independent
        }
        EACH for (int s = 0; s < SLOTS; ++s) {
            const bool mine = s == here;
            const double removed = mine ? (drop ? 1.0 : -1.0) : share[s];
            INNER for (int d = 0; d < DIMS; ++d) {
                inverse[s][d] -= removed * along[d];
                support[s][d] = mine ? (drop ? 0.0 : point[d]) : support[s][d];
            }
            index[s] = mine ? (drop ? -1 : entering) : index[s];
        }
        pending = drop;
    }

    double terms = 0.0;
    EACH for (int d = 0; d < TASKS; ++d) {
        double coordinate = 0.0, alpha = 0.0, size = 0.0;
        INNER for (int s = 0; s < SLOTS; ++s) {
            const int i = best_index[s];
            if (i < 0) continue;
            const double entry = rows.task(i) >= 0 ? double(rows.task(i) == d) : rows.entry(i, d);
            coordinate += best_shares[s] * points[d * count + i];
            alpha += best_shares[s] * entry;
            size += best_shares[s] * fabs(entry);
        }
        found.squared_norm += coordinate * coordinate;
        terms += size * scale[d];
        if (lane == d) found.combination = alpha;
    }
    if (!(best_gap < INFINITE)) return;  // no gap was a number: the squares of the input are beyond double
    const bool zero = found.squared_norm <= zero_tolerance * terms * terms;
    found.status = zero ? ZERO : best_gap > INEXACT_GAP ? INEXACT : SOLVED;
    found.gap = zero ? threshold * best_gap : best_gap;
}
