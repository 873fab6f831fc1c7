// A step of Pareto MTL in one launch, one warp for each subproblem: what Method.weigh, ParetoMTL._weigh and
// core.direction do, in the same order. See there for the reasons. min_norm_solver.cu comes before this text. Lane i holds
// what belongs to task i.
//
// Defined before both: TASKS (m), DOUBLE_LOSSES and DOUBLE_GRAMIAN (1: double, 0: float).

#if DOUBLE_LOSSES
typedef double Loss;
#else
typedef float Loss;
#endif
#if DOUBLE_GRAMIAN
typedef double Real;
#else
typedef float Real;
#endif

#define FEASIBLE_TOLERANCE 1e-9
#define ROUNDING 1e-12
#define SHORTEST 1e-12  // as in torch.nn.functional.normalize

enum Phase { INITIAL, MAIN, RELEASED };
enum Status { INFEASIBLE, FEASIBLE, CRITICAL, NEGATIVE };

// The gradients of the tasks, then the constraints.
struct Points {
    const double* constraints;  // [J][m]

    __device__ __forceinline__ int task(int i) const { return i < TASKS ? i : -1; }
    __device__ __forceinline__ double entry(int i, int d) const { return constraints[(i - TASKS) * TASKS + d]; }
};

// Without a mask of present tasks (present_stride −1) all are, and a number that is negative is read from the device; the
// pointers are not read otherwise. Scales are written where they are in use (scaled), and the steps spent on returns where
// subproblems may return (returns). A limit that is negative stands for return_share times the number of the step.
// One block on a processor is enough: so the compiler may use all registers, and spills none.
extern "C" __global__ void __launch_bounds__(32, 1)
    pareto_mtl(const Loss* losses, const Real* gramian, const unsigned char* present, const long long* number_there,
               const double* rows, const long long* phase, const long long* status, const long long* since,
               const double* last, const double* scale, const long long* returned, Loss* weights, long long* new_phase,
               long long* new_status, long long* new_since, double* new_last, double* new_scale,
               long long* new_returned, int count, int present_stride, int scaled, int rescale, int unit_rows,
               int returns, double given_number, double cap, double release, double limit, double return_share,
               double epsilon, double zero_tolerance) {
    extern __shared__ double shared[];
    double* const factors = shared;                      // [m], c
    double* const direction = factors + TASKS;           // [m], of the loss vector
    double* const constraints = direction + TASKS;       // [J][m]
    const Memory memory(constraints + count * TASKS, TASKS + count);
    double* const values = memory.points;                // [J], until the dual is solved
    double* const thresholds = memory.points + count;    // [J]

    const int lane = threadIdx.x;
    const long long k = blockIdx.x, at = k * TASKS + lane;
    const bool mine = lane < TASKS;

    // Absent tasks have loss and gradient 0. A subproblem that is not finite keeps its state.
    const bool here = mine && (present_stride < 0 || present[k * present_stride + lane]);
    const unsigned all_here = __ballot_sync(ALL, here);
    double loss = here ? double(losses[at]) : 0.0;
    bool sound = is_finite(loss);
    for (int e = lane; e < TASKS * TASKS; e += 32) {
        const bool both = all_here >> e / TASKS & all_here >> e % TASKS & 1u;
        const double entry = both ? double(gramian[k * TASKS * TASKS + e]) : 0.0;
        sound = sound && is_finite(entry);
        memory.gramian(e) = entry;
    }
    if (!__all_sync(ALL, sound) || !all_here) {
        if (mine) {
            weights[at] = 0;
            new_last[at] = last[at];
            if (scaled) new_scale[at] = scale[at];
        }
        if (lane == 0) {
            new_phase[k] = phase[k];
            new_status[k] = status[k];
            new_since[k] = since[k];
            if (returns) new_returned[k] = returned[k];
        }
        return;
    }

    // From here on a task that is absent has its last finite loss, and the subproblem is that of c ∘ L.
    double c = 1.0;
    if (mine) {
        if (!here) loss = last[at];
        new_last[at] = loss;
        if (scaled) {
            double known = scale[at];
            if (!(known > 0.0 || !here || loss == 0.0)) known = 1.0 / fmax(fabs(loss), TINY);
            new_scale[at] = known;
            c = known > 0.0 ? known : 1.0;
        }
        factors[lane] = c;
    }
    const bool negative = __any_sync(ALL, loss < 0.0);
    const double seen = c * loss;
    const bool finite = __all_sync(ALL, is_finite(seen));
    const double largest = warp_max(fabs(seen));
    const double unit = seen / fmax(largest, TINY);
    const double length = sqrt(warp_sum(unit * unit));
    if (mine) direction[lane] = unit / fmax(length, 1.0);
    __syncwarp();
    for (int e = lane; e < TASKS * TASKS; e += 32)
        memory.gramian(e) = factors[e / TASKS] * memory.gramian(e) * factors[e % TASKS];

    // Losses that are not finite are in no region and activate nothing.
    bool violated = false, outside = false, feasible = true;
    for (int j = lane; j < count; j += 32) {
        const double* const row = rows + (k * count + j) * TASKS;
        double value = 0.0, square = 0.0;
        for (int d = 0; d < TASKS; ++d) {
            value += row[d] * direction[d];
            square += row[d] * row[d];
        }
        if (largest == 0.0) value = -square / 2.0;
        const double norm = unit_rows ? fmax(sqrt(square), SHORTEST) : 1.0;
        for (int d = 0; d < TASKS; ++d) constraints[j * TASKS + d] = row[d] / norm;
        values[j] = value;
        thresholds[j] = -epsilon * (square / 2.0);
        violated = violated || (finite && value >= 0.0);
        outside = outside || (finite && value > FEASIBLE_TOLERANCE);
        feasible = feasible && finite && value <= FEASIBLE_TOLERANCE;
    }
    violated = __any_sync(ALL, violated);
    outside = __any_sync(ALL, outside);
    feasible = __all_sync(ALL, feasible);

    const long long number = given_number < 0.0 ? *number_there : (long long)given_number;
    const long long before = returns ? returned[k] : -1;
    const long long spent = before < 0 ? 0 : before;  // steps on returns
    const bool first = before < 0 && !(double(number) >= cap);  // the first initial phase may last
    int now = int(phase[k]);
    if (now == INITIAL && !first) now = MAIN;
    if (double(number) >= release) now = RELEASED;
    if (returns && now == MAIN && outside && !negative) {
        const double most = limit < 0.0 ? return_share * double(number) : limit;
        if (double(spent) < most) now = INITIAL;
    }
    if (now == INITIAL && !violated && finite) now = MAIN;
    if (mine) memory.allow(lane, finite && now != INITIAL && here);
    for (int j = lane; j < count; j += 32) {
        const bool active = values[j] >= (now == INITIAL ? 0.0 : thresholds[j]);
        memory.allow(TASKS + j, finite && now != RELEASED && active);
    }

    Found found;
    solve(memory, Points{constraints}, TASKS + count, zero_tolerance, found);

    double weight = mine ? factors[lane] * found.combination : 0.0;
    if (rescale && now != INITIAL) {
        const double meant = warp_sum(fabs(found.combination)), sum = warp_sum(fabs(weight));
        weight = meant > ROUNDING ? weight * (TASKS / fmax(sum, TINY)) : 0.0;
    }
    if (mine) weights[at] = here ? Loss(weight) : Loss(0);
    if (lane == 0) {
        const long long code = negative ? NEGATIVE : !feasible ? INFEASIBLE : found.status == ZERO ? CRITICAL : FEASIBLE;
        new_phase[k] = now;
        new_status[k] = code;
        new_since[k] = code == status[k] ? since[k] : number;
        if (returns) new_returned[k] = now != INITIAL ? spent : first ? -1 : spent + 1;
    }
}
