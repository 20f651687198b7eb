/* lib/kernels/elem/isa/k_reduce.c -- reductions, softmax and normalisation, compiled once per instruction set.
 *
 * Everything is built on sixteen lanes: lane l takes the elements l, l + 16, ... in order. A row keeps its lanes
 * in two vectors of eight; columns keep 16 lanes per column. */
#include "kernels/elem/isa.h"

#include <string.h>

#define LANES 16
#define COLS 64   /* columns at a time */
#define CHUNK 512 /* row elements at a time where a buffer is needed; a multiple of LANES */

/* Eight floats for the compiler to place in registers; with less than 256 bits it splits them. */
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t m8 __attribute__((vector_size(32)));

static const float identity[OCT_REDUCE_COUNT] = {
    [OCT_REDUCE_MAX] = -INFINITY, [OCT_REDUCE_MIN] = INFINITY, [OCT_REDUCE_PROD] = 1.0f
};

/* The two steps of each reduction: take one element, join two lanes. */
static inline float take_sum(float a, float x)
{
    return a + x;
}
static inline float take_square(float a, float x)
{
    return fmaf(x, x, a);
}
static inline float take_abs(float a, float x)
{
    return a + oct_absf(x);
}
static inline float take_prod(float a, float x)
{
    return a * x;
}

static oct_reduce_op join_of(oct_reduce_op op)
{
    return op == OCT_REDUCE_MAX || op == OCT_REDUCE_MIN || op == OCT_REDUCE_PROD ? op : OCT_REDUCE_SUM;
}

static inline float join(oct_reduce_op op, float a, float b)
{
    switch (op) {
    case OCT_REDUCE_MAX: return nan_max(a, b);
    case OCT_REDUCE_MIN: return nan_min(a, b);
    case OCT_REDUCE_PROD: return a * b;
    default: return a + b;
    }
}

static inline float finish(oct_reduce_op op, float v, size_t n)
{
    switch (op) {
    case OCT_REDUCE_MEAN: return v / (float)n;
    case OCT_REDUCE_L2: return sqrtf(v);
    case OCT_REDUCE_LOG_SUM: return oct_logf(v);
    default: return v;
    }
}

/* ------------------------------------------------------------------ rows */

/* A macro: passing such vectors between functions has no ABI on the baseline. */
#define LOAD8(v, x) memcpy(&(v), (x), sizeof(v8))

/* The lanes in two vectors; the tail goes into single lanes. VSTEP is TAKE for vectors. */
#define ROW(name, take, vstep)                                         \
    static void row_##name(float acc[LANES], const float *x, size_t n) \
    {                                                                  \
        v8 a, b, p, q;                                                 \
        LOAD8(a, acc);                                                 \
        LOAD8(b, acc + 8);                                             \
        size_t i = 0;                                                  \
        for (; i + LANES <= n; i += LANES) {                           \
            LOAD8(p, x + i);                                           \
            LOAD8(q, x + i + 8);                                       \
            vstep(a, p);                                               \
            vstep(b, q);                                               \
        }                                                              \
        size_t l = 0;                                                  \
        if (i + 8 <= n) {                                              \
            LOAD8(p, x + i);                                           \
            vstep(a, p);                                               \
            l = 8;                                                     \
        }                                                              \
        memcpy(acc, &a, sizeof a);                                     \
        memcpy(acc + 8, &b, sizeof b);                                 \
        for (; i + l < n; l++)                                         \
            acc[l] = take(acc[l], x[i + l]);                           \
    }
#define VADD(a, p) a = a + p
#define VMUL(a, p) a = a * p
#define VABS(a, p) a = a + (v8)((m8)p & 0x7fffffff)
#define VSELECT(a, p, mask)                           \
    do {                                              \
        m8 mask_ = (mask);                            \
        a = (v8)(((m8)p & mask_) | ((m8)a & ~mask_)); \
    } while (0)
#define VMAX(a, p) VSELECT(a, p, (p > a) | (p != p))
#define VMIN(a, p) VSELECT(a, p, (p < a) | (p != p))
/* Without care for NaN of p: it is left out. */
#if defined(__AVX2__)
#define VMORE(a, p) a = (v8)_mm256_max_ps((__m256)p, (__m256)a)
#define VLESS(a, p) a = (v8)_mm256_min_ps((__m256)p, (__m256)a)
#else
#define VMORE(a, p) VSELECT(a, p, p > a)
#define VLESS(a, p) VSELECT(a, p, p < a)
#endif
#if defined(__AVX2__) && defined(__FMA__)
#define VSQUARE(a, p) a = (v8)_mm256_fmadd_ps((__m256)p, (__m256)p, (__m256)a)
#else
#define VSQUARE(a, p)              \
    for (int l_ = 0; l_ < 8; l_++) \
    a[l_] = fmaf(p[l_], p[l_], a[l_])
#endif
ROW(sum, take_sum, VADD)
ROW(square, take_square, VSQUARE)
ROW(abs, take_abs, VABS)
ROW(prod, take_prod, VMUL)

/* NaN is looked for beside the lanes, which then wait for one instruction. */
#define ROW_BOUND(name, take, vstep)                                   \
    static void row_##name(float acc[LANES], const float *x, size_t n) \
    {                                                                  \
        v8 a, b, p, q;                                                 \
        m8 bad = { 0 }, worse = { 0 };                                 \
        LOAD8(a, acc);                                                 \
        LOAD8(b, acc + 8);                                             \
        size_t i = 0;                                                  \
        for (; i + LANES <= n; i += LANES) {                           \
            LOAD8(p, x + i);                                           \
            LOAD8(q, x + i + 8);                                       \
            vstep(a, p);                                               \
            vstep(b, q);                                               \
            bad |= p != p;                                             \
            worse |= q != q;                                           \
        }                                                              \
        a = (v8)((m8)a | bad); /* all bits set: NaN */                 \
        b = (v8)((m8)b | worse);                                       \
        memcpy(acc, &a, sizeof a);                                     \
        memcpy(acc + 8, &b, sizeof b);                                 \
        for (size_t l = 0; i + l < n; l++)                             \
            acc[l] = take(acc[l], x[i + l]);                           \
    }
ROW_BOUND(max, nan_max, VMORE)
ROW_BOUND(min, nan_min, VLESS)

/* One copy for each op; lanes that have been joined are carried along. */
#if defined(__clang__)
#define SWAP(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define SWAP(v, ...) __builtin_shuffle(v, (m8){ __VA_ARGS__ })
#endif
#define TREE(name, vstep)                            \
    static float tree_##name(const float acc[LANES]) \
    {                                                \
        v8 a, b;                                     \
        LOAD8(a, acc);                               \
        LOAD8(b, acc + 8);                           \
        vstep(a, b);                                 \
        b = SWAP(a, 4, 5, 6, 7, 0, 1, 2, 3);         \
        vstep(a, b);                                 \
        b = SWAP(a, 2, 3, 0, 1, 6, 7, 4, 5);         \
        vstep(a, b);                                 \
        b = SWAP(a, 1, 0, 3, 2, 5, 4, 7, 6);         \
        vstep(a, b);                                 \
        return a[0];                                 \
    }
TREE(sum, VADD)
TREE(max, VMAX)
TREE(min, VMIN)
TREE(prod, VMUL)

static float tree(oct_reduce_op op, const float acc[LANES])
{
    switch (op) {
    case OCT_REDUCE_MAX: return tree_max(acc);
    case OCT_REDUCE_MIN: return tree_min(acc);
    case OCT_REDUCE_PROD: return tree_prod(acc);
    default: return tree_sum(acc);
    }
}

static void fill(float *v, size_t n, float x)
{
    for (size_t i = 0; i < n; i++)
        v[i] = x;
}

static float row_reduce(oct_reduce_op op, const float *x, size_t n)
{
    float acc[LANES];
    fill(acc, LANES, identity[op]);
    switch (op) {
    case OCT_REDUCE_MAX: row_max(acc, x, n); break;
    case OCT_REDUCE_MIN: row_min(acc, x, n); break;
    case OCT_REDUCE_SUM_SQUARE:
    case OCT_REDUCE_L2: row_square(acc, x, n); break;
    case OCT_REDUCE_L1: row_abs(acc, x, n); break;
    case OCT_REDUCE_PROD: row_prod(acc, x, n); break;
    default: row_sum(acc, x, n);
    }
    return tree(join_of(op), acc);
}

/* What the exponents are taken relative to: the largest value, or 0 where that would make inf - inf. */
static inline float finite_or_zero(float m)
{
    return oct_absf(m) == INFINITY ? 0.0f : m;
}

/* log(sum(exp)) from the largest value and the sum relative to it. */
static inline float log_sum(float m, float sum)
{
    return m == INFINITY ? m : finite_or_zero(m) + oct_logf(sum);
}

/* exp(x), x <= 0 and no NaN: what is below the normal numbers is 0. */
static inline float exp_negative(float x)
{
    const int32_t least = 0x42ae0000, a = oct_bits_of(oct_absf(x)); /* 87 */
    float y = oct_expf_small(-oct_float_of(a < least ? a : least));
    return a > least ? 0.0f : y;
}

static void exp_minus(const float *x, size_t n, float m, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = exp_negative(x[i] - m);
}

static void row_exp(float acc[LANES], const float *x, size_t n, float m)
{
    float e[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t k = n - i < CHUNK ? n - i : CHUNK;
        exp_minus(x + i, k, m, e);
        row_sum(acc, e, k);
    }
}

void K(reduce_row)(oct_reduce_op op, const float *x, size_t n, float *y)
{
    if (op == OCT_REDUCE_LOG_SUM_EXP) {
        const float m = row_reduce(OCT_REDUCE_MAX, x, n);
        float acc[LANES] = { 0 };
        row_exp(acc, x, n, finite_or_zero(m));
        *y = log_sum(m, tree_sum(acc));
        return;
    }
    *y = finish(op, row_reduce(op, x, n), n);
}

typedef float v4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));

static inline void load_doubles(const float *x, d4 *v)
{
    v4 f;
    memcpy(&f, x, sizeof f);
    *v = __builtin_convertvector(f, d4);
}

static inline void add_squares(d4 sum[LANES / 4], const float *x, const float *y)
{
    for (size_t k = 0; k < LANES / 4; k++) {
        d4 a, b;
        load_doubles(x + 4 * k, &a);
        load_doubles(y + 4 * k, &b);
        sum[k] += (a - b) * (a - b);
    }
}

void K(squared_error)(const float *x, const float *y, size_t n, double *sum)
{
    d4 s[LANES / 4] = { { 0 } };
    float last[2][LANES] = { { 0 } };
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        add_squares(s, x + i, y + i);
    memcpy(last[0], x + whole, (n - whole) * sizeof *x);
    memcpy(last[1], y + whole, (n - whole) * sizeof *y);
    add_squares(s, last[0], last[1]);
    const d4 quarter = (s[0] + s[2]) + (s[1] + s[3]);
    *sum = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

/* The sum of x - mean, or of its squares, by sixteen lanes of double. */
#define WIDE(name, expr)                                              \
    static double name(const float *x, size_t n, const double mean)   \
    {                                                                 \
        d4 s[LANES / 4] = { { 0 } };                                  \
        const size_t whole = n - n % LANES;                           \
        for (size_t i = 0; i < whole; i += LANES)                     \
            for (size_t k = 0; k < LANES / 4; k++) {                  \
                d4 d;                                                 \
                load_doubles(x + i + 4 * k, &d);                      \
                d -= mean;                                            \
                s[k] += (expr);                                       \
            }                                                         \
        for (size_t l = 0; l < n - whole; l++) {                      \
            const double d = (double)x[whole + l] - mean;             \
            s[l / 4][l % 4] += (expr);                                \
        }                                                             \
        const d4 quarter = (s[0] + s[2]) + (s[1] + s[3]);             \
        return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]); \
    }
WIDE(wide_sum, d)
WIDE(wide_squares, d *d)

void K(moments)(const float *x, size_t n, double moments[2])
{
    moments[0] = wide_sum(x, n, 0.0) / (double)n;
    moments[1] = wide_squares(x, n, moments[0]) / (double)n;
}

void K(sum_squares)(const float *x, size_t n, double *sum)
{
    *sum = wide_squares(x, n, 0.0);
}

void K(min_max)(const float *x, size_t n, float *lo, float *hi, bool *nan)
{
    float a[LANES], b[LANES];
    int32_t seen = 0;
    fill(a, LANES, INFINITY);
    fill(b, LANES, -INFINITY);
    size_t i = 0;
    v8 a0, a1, b0, b1, p, q;
    LOAD8(a0, a);
    LOAD8(b0, b);
    a1 = a0;
    b1 = b0;
    m8 bad = { 0 };
    for (; i + LANES <= n; i += LANES) {
        LOAD8(p, x + i);
        LOAD8(q, x + i + 8);
        VLESS(a0, p);
        VLESS(a1, q);
        VMORE(b0, p);
        VMORE(b1, q);
        bad |= (p != p) | (q != q);
    }
    memcpy(a, &a0, sizeof a0);
    memcpy(a + 8, &a1, sizeof a1);
    memcpy(b, &b0, sizeof b0);
    memcpy(b + 8, &b1, sizeof b1);
    for (size_t l = 0; i + l < n; l++) {
        float v = x[i + l];
        a[l] = v < a[l] ? v : a[l];
        b[l] = v > b[l] ? v : b[l];
        seen |= v != v;
    }
    for (int l = 0; l < 8; l++)
        seen |= bad[l];
    /* +0 before -0 or after: the sign of a zero bound depends on the order, so it is made positive. */
    *lo = tree(OCT_REDUCE_MIN, a) + 0.0f;
    *hi = tree(OCT_REDUCE_MAX, b) + 0.0f;
    *nan = seen != 0;
}

/* Short rows go through each step together: a row's own steps wait for each other. */
enum { GROUP = 8, GROUP_ROW = 1024 };

static size_t group_of(size_t n)
{
    return n <= GROUP_ROW ? GROUP : 1;
}

/* Up to GROUP rows, ld apart; `masked`: zeros where nothing is above -inf. */
static void softmax_group(bool log, bool masked, const float *x, size_t rows, size_t n, size_t ld, float *y)
{
    float acc[GROUP][LANES], m[GROUP], s[GROUP];
    fill(acc[0], rows * LANES, -INFINITY);
    for (size_t r = 0; r < rows; r++)
        row_max(acc[r], x + r * ld, n);
    for (size_t r = 0; r < rows; r++)
        m[r] = tree_max(acc[r]);
    fill(acc[0], rows * LANES, 0.0f);
    for (size_t r = 0; r < rows; r++)
        if (log) {
            row_exp(acc[r], x + r * ld, n, m[r]);
        } else {
            exp_minus(x + r * ld, n, m[r], y + r * ld);
            row_sum(acc[r], y + r * ld, n);
        }
    for (size_t r = 0; r < rows; r++)
        s[r] = tree_sum(acc[r]);
    for (size_t r = 0; r < rows; r++) {
        const float most = m[r], sum = log ? oct_logf(s[r]) : 1.0f / s[r], *from = x + r * ld;
        float *to = y + r * ld;
        if (masked && most == -INFINITY) {
            fill(to, n, 0.0f);
        } else if (log) {
            OCT_EACH
            for (size_t i = 0; i < n; i++)
                to[i] = from[i] - most - sum;
        } else {
            OCT_EACH
            for (size_t i = 0; i < n; i++)
                to[i] = to[i] * sum;
        }
    }
}

void K(softmax_rows)(bool log, const float *x, size_t rows, size_t n, float *y)
{
    const size_t group = group_of(n);
    for (size_t r = 0; r < rows; r += group)
        softmax_group(log, false, x + r * n, rows - r < group ? rows - r : group, n, n, y + r * n);
}

void K(softmax_scaled_rows)(const float *x, size_t rows, size_t n, size_t ld, float scale, const float *bias,
                            size_t step, float *y)
{
    const size_t group = group_of(n);
    for (size_t r = 0; r < rows; r += group) {
        const size_t k = rows - r < group ? rows - r : group;
        for (size_t j = r; j < r + k; j++) {
            const float *from = x + j * ld, *add = bias ? bias + j * step : NULL;
            float *to = y + j * ld;
            if (add) {
                OCT_EACH
                for (size_t i = 0; i < n; i++)
                    to[i] = fmaf(from[i], scale, add[i]);
            } else {
                OCT_EACH
                for (size_t i = 0; i < n; i++)
                    to[i] = from[i] * scale;
            }
        }
        softmax_group(false, bias != NULL, y + r * ld, k, n, ld, y + r * ld);
    }
}

/* ------------------------------------------------------------------ columns */

#define COL(name, take)                                                                                   \
    static void cols_##name(float acc[LANES][COLS], const float *x, size_t n, size_t stride, size_t cols) \
    {                                                                                                     \
        for (size_t i = 0; i < n; i++, x += stride) {                                                     \
            float *a = acc[i % LANES];                                                                    \
            OCT_EACH                                                                                      \
            for (size_t c = 0; c < cols; c++)                                                             \
                a[c] = take(a[c], x[c]);                                                                  \
        }                                                                                                 \
    }
COL(sum, take_sum)
COL(square, take_square)
COL(abs, take_abs)
COL(prod, take_prod)
COL(max, nan_max)
COL(min, nan_min)

/* Lanes that n elements reach, as a power of two: the others would stay at the identity, which joins without effect. */
static size_t lanes_of(size_t n)
{
    size_t lanes = LANES;
    while (lanes > 1 && lanes / 2 >= n)
        lanes /= 2;
    return lanes;
}

static inline void cols_tree_of(const oct_reduce_op op, float acc[LANES][COLS], size_t lanes, size_t cols)
{
    for (size_t half = lanes / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) {
            float *a = acc[l], *b = acc[l + half];
            OCT_EACH
            for (size_t c = 0; c < cols; c++)
                a[c] = join(op, a[c], b[c]);
        }
}

/* One copy for each op, so that a step is one instruction. */
static void cols_tree(oct_reduce_op op, float acc[LANES][COLS], size_t lanes, size_t cols)
{
    switch (op) {
    case OCT_REDUCE_MAX: cols_tree_of(OCT_REDUCE_MAX, acc, lanes, cols); break;
    case OCT_REDUCE_MIN: cols_tree_of(OCT_REDUCE_MIN, acc, lanes, cols); break;
    case OCT_REDUCE_PROD: cols_tree_of(OCT_REDUCE_PROD, acc, lanes, cols); break;
    default: cols_tree_of(OCT_REDUCE_SUM, acc, lanes, cols);
    }
}

/* The reduction of up to COLS columns, left in acc[0]. */
static void cols_reduce(oct_reduce_op op, float acc[LANES][COLS], const float *x, size_t n, size_t stride, size_t cols)
{
    const size_t lanes = lanes_of(n);
    fill(acc[0], lanes * COLS, identity[op]);
    switch (op) {
    case OCT_REDUCE_MAX: cols_max(acc, x, n, stride, cols); break;
    case OCT_REDUCE_MIN: cols_min(acc, x, n, stride, cols); break;
    case OCT_REDUCE_SUM_SQUARE:
    case OCT_REDUCE_L2: cols_square(acc, x, n, stride, cols); break;
    case OCT_REDUCE_L1: cols_abs(acc, x, n, stride, cols); break;
    case OCT_REDUCE_PROD: cols_prod(acc, x, n, stride, cols); break;
    default: cols_sum(acc, x, n, stride, cols);
    }
    cols_tree(join_of(op), acc, lanes, cols);
}

static void cols_sum_exp(float acc[LANES][COLS], const float *x, size_t n, size_t stride, size_t cols, const float *m)
{
    const size_t lanes = lanes_of(n);
    fill(acc[0], lanes * COLS, 0.0f);
    for (size_t i = 0; i < n; i++, x += stride) {
        float *a = acc[i % LANES];
        OCT_EACH
        for (size_t c = 0; c < cols; c++)
            a[c] = a[c] + exp_negative(x[c] - m[c]);
    }
    cols_tree(OCT_REDUCE_SUM, acc, lanes, cols);
}

static void reduce_block(oct_reduce_op op, const float *x, size_t n, size_t stride, size_t cols, float *y)
{
    float acc[LANES][COLS], m[COLS], most[COLS];
    if (op != OCT_REDUCE_LOG_SUM_EXP) {
        cols_reduce(op, acc, x, n, stride, cols);
        for (size_t c = 0; c < cols; c++)
            y[c] = finish(op, acc[0][c], n);
        return;
    }
    cols_reduce(OCT_REDUCE_MAX, acc, x, n, stride, cols);
    for (size_t c = 0; c < cols; c++) {
        most[c] = acc[0][c];
        m[c] = finite_or_zero(most[c]);
    }
    cols_sum_exp(acc, x, n, stride, cols, m);
    for (size_t c = 0; c < cols; c++)
        y[c] = log_sum(most[c], acc[0][c]);
}

void K(reduce_cols)(oct_reduce_op op, const float *x, size_t n, size_t stride, size_t cols, float *y)
{
    for (size_t c = 0; c < cols; c += COLS)
        reduce_block(op, x + c, n, stride, cols - c < COLS ? cols - c : COLS, y + c);
}

static void log_softmax_block(const float *x, size_t n, size_t stride, size_t cols, float *y)
{
    float acc[LANES][COLS], m[COLS], s[COLS];
    cols_reduce(OCT_REDUCE_MAX, acc, x, n, stride, cols);
    memcpy(m, acc[0], sizeof m);
    cols_sum_exp(acc, x, n, stride, cols, m);
    for (size_t c = 0; c < cols; c++)
        s[c] = oct_logf(acc[0][c]);
    for (size_t i = 0; i < n; i++, x += stride, y += stride) {
        OCT_EACH
        for (size_t c = 0; c < cols; c++)
            y[c] = x[c] - m[c] - s[c];
    }
}

static void softmax_block(const float *x, size_t n, size_t stride, size_t cols, float *y)
{
    float acc[LANES][COLS], m[COLS], rate[COLS];
    cols_reduce(OCT_REDUCE_MAX, acc, x, n, stride, cols);
    memcpy(m, acc[0], sizeof m);
    for (size_t i = 0; i < n; i++) {
        const float *from = x + i * stride;
        float *to = y + i * stride;
        OCT_EACH
        for (size_t c = 0; c < cols; c++)
            to[c] = exp_negative(from[c] - m[c]);
    }
    cols_reduce(OCT_REDUCE_SUM, acc, y, n, stride, cols);
    OCT_EACH
    for (size_t c = 0; c < cols; c++)
        rate[c] = 1.0f / acc[0][c];
    for (size_t i = 0; i < n; i++, y += stride) {
        OCT_EACH
        for (size_t c = 0; c < cols; c++)
            y[c] = y[c] * rate[c];
    }
}

void K(softmax_cols)(bool log, const float *x, size_t n, size_t stride, size_t cols, float *y)
{
    for (size_t c = 0; c < cols; c += COLS)
        (log ? log_softmax_block : softmax_block)(x + c, n, stride, cols - c < COLS ? cols - c : COLS, y + c);
}

/* ------------------------------------------------------------------ normalisation */

static float sum_centered(const float *x, size_t n, float mean)
{
    float acc[LANES] = { 0 }, d[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t k = n - i < CHUNK ? n - i : CHUNK;
        OCT_EACH
        for (size_t j = 0; j < k; j++)
            d[j] = x[i + j] - mean;
        row_square(acc, d, k);
    }
    return tree(OCT_REDUCE_SUM, acc);
}

void K(norm_row_stats)(const float *x, size_t n, float eps, bool rms, float stats[2])
{
    stats[0] = rms ? 0.0f : row_reduce(OCT_REDUCE_SUM, x, n) / (float)n;
    stats[1] = 1.0f / sqrtf(sum_centered(x, n, stats[0]) / (float)n + eps);
}

void K(norm_row)(const float *x, size_t n, const float stats[2], const float *gamma, const float *beta, float *y)
{
    const float mean = stats[0], r = stats[1];
    if (beta) {
        OCT_EACH
        for (size_t i = 0; i < n; i++)
            y[i] = fmaf((x[i] - mean) * r, gamma[i], beta[i]);
    } else {
        OCT_EACH
        for (size_t i = 0; i < n; i++)
            y[i] = fmaf((x[i] - mean) * r, gamma[i], 0.0f);
    }
}

void K(norm_row_const)(const float *x, size_t n, const float stats[2], float gamma, float beta, float *y)
{
    const float mean = stats[0], r = stats[1];
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf((x[i] - mean) * r, gamma, beta);
}

void K(norm_wide)(const float *x, size_t n, double mean, float rate, float gamma, float beta, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf((float)((double)x[i] - mean) * rate, gamma, beta);
}

static void norm_stats_block(const float *x, size_t n, size_t stride, size_t cols, float eps, float *mean, float *rstd)
{
    float acc[LANES][COLS];
    cols_reduce(OCT_REDUCE_SUM, acc, x, n, stride, cols);
    for (size_t c = 0; c < cols; c++)
        mean[c] = acc[0][c] / (float)n;
    fill(acc[0], LANES * COLS, 0.0f);
    for (size_t i = 0; i < n; i++, x += stride) {
        float *a = acc[i % LANES];
        OCT_EACH
        for (size_t c = 0; c < cols; c++)
            a[c] = take_square(a[c], x[c] - mean[c]);
    }
    cols_tree(OCT_REDUCE_SUM, acc, LANES, cols);
    for (size_t c = 0; c < cols; c++)
        rstd[c] = 1.0f / sqrtf(acc[0][c] / (float)n + eps);
}

void K(norm_cols_stats)(const float *x, size_t n, size_t stride, size_t cols, float eps, float *mean, float *rstd)
{
    for (size_t c = 0; c < cols; c += COLS)
        norm_stats_block(x + c, n, stride, cols - c < COLS ? cols - c : COLS, eps, mean + c, rstd + c);
}

void K(norm_cols)(const float *x, size_t c, const float *mean, const float *rstd, const float *gamma, const float *beta,
                  float *y)
{
    OCT_EACH
    for (size_t i = 0; i < c; i++)
        y[i] = fmaf((x[i] - mean[i]) * rstd[i], gamma[i], beta[i]);
}

void K(scale_shift)(const float *x, size_t n, const float *s, const float *b, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(x[i], s[i], b[i]);
}
