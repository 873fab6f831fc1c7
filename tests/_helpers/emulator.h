// CUDA C as C++20: the threads of a block are fibers of one thread, blocks run one after another.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cmath>
#include <memory>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

constexpr std::size_t STACK = 256 << 10;
constexpr std::size_t CANARY = 64;
constexpr unsigned BLOCK = 0;  // waits for its block; other values are the mask of lanes that it waits for

enum State { READY, WAITS, DONE };

struct Fiber {
    State state = READY;
    bool started = false;
    unsigned mask = 0;
    unsigned turn = 0;
    jmp_buf place;
    ucontext_t entry;
    std::unique_ptr<char[]> stack;
};

struct Warp {
    unsigned arrived = 0;
    std::uint64_t exchange[2][32];
};

static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static unsigned current, arrived, living;
static jmp_buf scheduler;
static ucontext_t home;
static char* shared;
static char message[200];
static void (*body)();

static inline void fail(const char* text) {
    std::snprintf(message, sizeof message, "%s (thread %u of block %u, %u, %u)", text, current, blockIdx.x, blockIdx.y,
                  blockIdx.z);
    _longjmp(scheduler, 2);
}

// The two returns of setjmp must not be mixed up with the locals of a kernel: never inlined.
__attribute__((noinline)) static void leave() {
    if (!_setjmp(fibers[current].place)) _longjmp(scheduler, 1);
}

static void release_block() {
    if (living == 0 || arrived < living) return;
    arrived = 0;
    for (Fiber& fiber : fibers)
        if (fiber.state == WAITS && fiber.mask == BLOCK) fiber.state = READY;
}

static void entry() {
    body();
    fibers[current].state = DONE;
    --living;
    release_block();
    _longjmp(scheduler, 1);
}

static inline void wait_block() {
    Fiber& self = fibers[current];
    self.state = WAITS;
    self.mask = BLOCK;
    ++arrived;
    release_block();
    if (self.state == WAITS) leave();
}

static inline void wait_warp(unsigned mask) {
    const unsigned first = current / 32 * 32, lane = current % 32;
    const unsigned lanes = fibers.size() - first < 32 ? (1u << (fibers.size() - first)) - 1 : ~0u;
    mask &= lanes;
    if (!(mask >> lane & 1)) fail("a lane is not in its own mask");
    Fiber& self = fibers[current];
    Warp& warp = warps[current / 32];
    self.state = WAITS;
    self.mask = mask;
    warp.arrived |= 1u << lane;
    bool all = (warp.arrived & mask) == mask;
    for (unsigned i = 0; all && i < 32; ++i) all = !(mask >> i & 1) || fibers[first + i].mask == mask;
    if (!all) return leave();
    warp.arrived &= ~mask;
    for (unsigned i = 0; i < 32; ++i)
        if (mask >> i & 1) fibers[first + i].state = READY;
}

template <class T>
T swap(unsigned mask, T value, unsigned from) {
    static_assert(sizeof(T) <= 8);
    Warp& warp = warps[current / 32];
    const unsigned turn = fibers[current].turn++ % 2;  // two buffers: the next write cannot meet a late read
    std::memcpy(&warp.exchange[turn][current % 32], &value, sizeof(T));
    wait_warp(mask);
    if (!(mask >> from & 1)) fail("a value is asked of a lane outside of the mask");
    std::memcpy(&value, &warp.exchange[turn][from], sizeof(T));
    return value;
}

// Whether every thread of the block came to its end.
static bool run_block(bool backwards) {
    living = fibers.size();
    arrived = 0;
    for (Fiber& fiber : fibers) {
        fiber.state = READY;
        fiber.started = false;
        fiber.turn = 0;
        if (!fiber.stack) fiber.stack.reset(new char[STACK]);
    }
    for (Warp& warp : warps) warp.arrived = 0;
    static volatile bool moved;
    for (moved = true; living && moved;) {
        moved = false;
        static volatile unsigned step;
        for (step = 0; step < fibers.size(); step = step + 1) {
            current = backwards ? fibers.size() - 1 - step : step;
            Fiber& fiber = fibers[current];
            if (fiber.state != READY) continue;
            moved = true;
            threadIdx.x = current;
            const int came = _setjmp(scheduler);
            if (came == 2) return false;
            if (came == 1) continue;
            if (fiber.started) _longjmp(fiber.place, 1);
            fiber.started = true;
            getcontext(&fiber.entry);
            fiber.entry.uc_stack.ss_sp = fiber.stack.get();
            fiber.entry.uc_stack.ss_size = STACK;
            fiber.entry.uc_link = nullptr;
            makecontext(&fiber.entry, entry, 0);
            swapcontext(&home, &fiber.entry);
        }
    }
    if (living) std::snprintf(message, sizeof message, "%u threads wait for others that never come", living);
    return !living;
}

template <class T>
constexpr char kind = std::is_pointer_v<T>                        ? 'p'
                      : std::is_same_v<T, int>                    ? 'i'
                      : std::is_same_v<T, double>                 ? 'd'
                                                                  : '?';

template <class... T, std::size_t... I>
void call(void (*kernel)(T...), void** args, std::index_sequence<I...>) {
    kernel(*static_cast<T*>(args[I])...);
}

template <class... T>
const char* launch(void (*kernel)(T...), const unsigned* grid, unsigned block, unsigned bytes, const char* kinds,
                   void** args) {
    const char expected[] = {kind<T>..., 0};
    if (std::strcmp(expected, kinds)) {
        std::snprintf(message, sizeof message, "the arguments are of kinds %s, the kernel takes %s", kinds, expected);
        return message;
    }
    static void (*target)(T...);
    static void** values;
    target = kernel;
    values = args;
    body = [] { call(target, values, std::index_sequence_for<T...>{}); };
    fibers = std::vector<Fiber>(block);
    warps = std::vector<Warp>((block + 31) / 32);
    std::vector<double> storage((bytes + CANARY) / 8 + 2);
    shared = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(storage.data()) + 15) & ~std::uintptr_t{15});
    blockDim = {block, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    bool backwards = false;
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                std::memset(shared, 0xff, bytes + CANARY - 16);  // NaN: what is read must have been written
                if (!run_block(backwards)) return message;
                backwards = !backwards;  // both orders: what needs a barrier that is not there comes out different
                for (unsigned i = bytes; i < bytes + CANARY - 16; ++i)
                    if (shared[i] != char(0xff)) return "the kernel wrote past the end of its shared memory";
            }
    fibers.clear();
    return nullptr;
}

}  // namespace emulator

using std::isfinite;
using std::isnan;
#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

static inline void __syncthreads() { emulator::wait_block(); }
static inline void __syncwarp(unsigned mask = ~0u) { emulator::wait_warp(mask); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::swap(mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
    return emulator::swap(mask, value, (threadIdx.x % 32) ^ bits);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::swap(mask, value, lane % width + by < unsigned(width) ? lane + by : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = threadIdx.x % 32;
    return emulator::swap(mask, value, lane % width >= by ? lane - by : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int value) {
    const unsigned first = threadIdx.x / 32 * 32;
    unsigned found = 0;
    emulator::swap(mask, value, threadIdx.x % 32);
    const unsigned turn = (emulator::fibers[first + threadIdx.x % 32].turn - 1) % 2;
    for (unsigned i = 0; i < 32; ++i)
        if (mask >> i & 1 && first + i < blockDim.x) {
            int there;
            std::memcpy(&there, &emulator::warps[first / 32].exchange[turn][i], sizeof there);
            found |= unsigned(there != 0) << i;
        }
    return found;
}
static inline int __any_sync(unsigned mask, int value) { return __ballot_sync(mask, value) != 0; }
static inline int __all_sync(unsigned mask, int value) { return __ballot_sync(mask, !value) == 0; }
template <class T, class U>
T atomicAdd(T* where, U value) {
    const T before = *where;
    *where += value;
    return before;
}
template <class T>
T __ldg(const T* where) {
    return *where;
}
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
