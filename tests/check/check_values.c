/* tests/check/check_values.c -- whole operations against their definitions, written again naively: indices by
 * division, sums in double. Each also with two threads, which must not change a bit. */
#include "check.h"
#include "kernels/elem/table.h"
#include "kernels/layout.h"
#include "kernels/math.h"
#include "kernels/rnn.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static float *floats(oct_check *t, size_t n)
{
    return oct_check_buffer(t, n * sizeof(float));
}

/* |got - want| <= rel * |want| + abs, for each. */
static void near(oct_check *t, const float *got, const double *want, size_t n, double rel, double abs, const char *what)
{
    size_t i = 0;
    while (i < n && fabs((double)got[i] - want[i]) <= rel * fabs(want[i]) + abs)
        i++;
    oct_check_wrong(t, i < n, "%s: [%zu] = %.9g, want %.9g", what, i, i < n ? (double)got[i] : 0, i < n ? want[i] : 0);
}

/* ------------------------------------------------------------------ unary */

static double clip(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static double unary_ref(oct_unary_op op, double a, double b, double x)
{
    switch (op) {
    case OCT_UNARY_COPY: return x;
    case OCT_UNARY_RELU: return x > 0 ? x : 0;
    case OCT_UNARY_CLIP: return clip(x, a, b);
    case OCT_UNARY_LEAKY_RELU: return x < 0 ? a * x : x;
    case OCT_UNARY_THRESHOLDED_RELU: return x > a ? x : 0;
    case OCT_UNARY_SIGMOID: return 1 / (1 + exp(-x));
    case OCT_UNARY_HARD_SIGMOID: return clip(a * x + b, 0, 1);
    case OCT_UNARY_HARD_SWISH: return x * clip(x / 6 + 0.5, 0, 1);
    case OCT_UNARY_SWISH: return x / (1 + exp(-a * x));
    case OCT_UNARY_MISH: return x * tanh(log1p(exp(x)));
    case OCT_UNARY_TANH: return tanh(x);
    case OCT_UNARY_ELU: return x < 0 ? a * expm1(x) : x;
    case OCT_UNARY_CELU: return x < 0 ? a * expm1(x / a) : x;
    case OCT_UNARY_SELU: return b * (x < 0 ? a * expm1(x) : x);
    case OCT_UNARY_SOFTPLUS: return log1p(exp(x));
    case OCT_UNARY_SOFTSIGN: return x / (1 + fabs(x));
    case OCT_UNARY_ERF: return erf(x);
    case OCT_UNARY_GELU: return 0.5 * x * erfc(-x / sqrt(2));
    case OCT_UNARY_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case OCT_UNARY_EXP: return exp(x);
    case OCT_UNARY_EXPM1: return expm1(x);
    case OCT_UNARY_LOG: return log(x);
    case OCT_UNARY_LOG1P: return log1p(x);
    case OCT_UNARY_SQRT: return sqrt(x);
    case OCT_UNARY_RSQRT: return 1 / sqrt(x);
    case OCT_UNARY_RECIPROCAL: return 1 / x;
    case OCT_UNARY_SQUARE: return x * x;
    case OCT_UNARY_ABS: return fabs(x);
    case OCT_UNARY_NEG: return -x;
    case OCT_UNARY_SIGN: return (x > 0) - (x < 0);
    case OCT_UNARY_FLOOR: return floor(x);
    case OCT_UNARY_CEIL: return ceil(x);
    case OCT_UNARY_ROUND: return nearbyint(x);
    case OCT_UNARY_SIN: return sin(x);
    case OCT_UNARY_COS: return cos(x);
    case OCT_UNARY_TAN: return tan(x);
    case OCT_UNARY_SHRINK: return x < -a ? x + b : x > a ? x - b : 0;
    case OCT_UNARY_ASIN: return asin(x);
    case OCT_UNARY_ACOS: return acos(x);
    case OCT_UNARY_ATAN: return atan(x);
    case OCT_UNARY_SINH: return sinh(x);
    case OCT_UNARY_COSH: return cosh(x);
    case OCT_UNARY_ASINH: return asinh(x);
    case OCT_UNARY_ACOSH: return acosh(x);
    case OCT_UNARY_ATANH: return atanh(x);
    case OCT_UNARY_POW: return pow(x, a);
    case OCT_UNARY_SCALE: return x * a + b;
    default: return NAN;
    }
}

static bool positive_only(oct_unary_op op)
{
    return op == OCT_UNARY_LOG || op == OCT_UNARY_LOG1P || op == OCT_UNARY_SQRT || op == OCT_UNARY_RSQRT ||
           op == OCT_UNARY_POW;
}

static void values_unary(oct_check *t)
{
    enum { N = 20000 };
    static double want[N];
    for (int op = 0; op < OCT_UNARY_COUNT; op++) {
        const oct_unary f = { (oct_unary_op)op, 0.3f, 0.7f };
        float *x = floats(t, N), *y = floats(t, N), *z = floats(t, N);
        oct_fill_f32(t, x, N);
        for (size_t i = 0; i < N; i++) {
            x[i] *= i % 2 ? 10.0f : 1.0f;
            x[i] = positive_only(f.op) ? fabsf(x[i]) + 1e-4f : x[i];
            x[i] = i % 100 == 0 && !positive_only(f.op) ? floorf(x[i]) + 0.5f : x[i];
            if (f.op == OCT_UNARY_ASIN || f.op == OCT_UNARY_ACOS || f.op == OCT_UNARY_ATANH)
                x[i] = fmodf(x[i], 1.0f);
            else if (f.op == OCT_UNARY_ACOSH)
                x[i] = fabsf(x[i]) + 1.0f;
            want[i] = unary_ref(f.op, (double)f.a, (double)f.b, (double)x[i]);
        }
        oct_unary_f32(NULL, &f, x, y, N);
        oct_unary_f32(t->pool, &f, x, z, N);
        char name[40];
        snprintf(name, sizeof name, "unary %d", op);
        near(t, y, want, N, 1e-6, 1e-6, name);
        oct_check_same(t, y, z, N * sizeof *y, 4, "unary %d with threads", op);
        oct_check_release(t);
        oct_check_wrong(t, oct_unary_value(&f, NAN) == oct_unary_value(&f, NAN) && op != OCT_UNARY_COUNT,
                        "unary %d of NaN is a number", op);
    }
}

static float binary_ref(int op, float a, float b)
{
    switch (op) {
    case OCT_BINARY_ADD: return a + b;
    case OCT_BINARY_SUB: return a - b;
    case OCT_BINARY_MUL: return a * b;
    case OCT_BINARY_DIV: return a / b;
    case OCT_BINARY_MIN: return a < b ? a : b;
    case OCT_BINARY_MAX: return a > b ? a : b;
    case OCT_BINARY_FMOD: return fmodf(a, b);
    case OCT_BINARY_MOD: return fmodf(a, b) != 0 && signbit(a) != signbit(b) ? fmodf(a, b) + b : fmodf(a, b);
    default: return a < 0 ? a * b : a;
    }
}

/* Blocks of arguments that short forms hold for, blocks that they do not, and mixed ones: every element as by itself,
 * and as libm has it. */
static void values_rare(oct_check *t)
{
    enum { N = 1500 };
    static const float rare[] = { NAN,         INFINITY, -INFINITY, 0.0f,  -0.0f, 1e-40f, -1e-40f, 8388607.5f,
                                  -8388608.0f, 1e22f,    FLT_MAX,   -1.0f, 1.0f,  -3.0f,  0.5f };
    static const float powers[] = { 0.5f, -0.5f, 0.75f, 1.0f, 3.0f, 2.0f, 0.0f, -0.0f, -1.0f, 2.5f, INFINITY, NAN };
    static const struct {
        oct_unary_op op;
        float (*f)(float);
    } turns[] = { { OCT_UNARY_SIN, sinf }, { OCT_UNARY_COS, cosf }, { OCT_UNARY_TAN, tanf } };
    float *x = floats(t, N), *y = floats(t, N), *p = floats(t, N);
    for (size_t i = 0; i < N; i++) {
        x[i] = ((float)oct_check_below(t, 1 << 20) - (i % 256 < 64 ? 0x1p19f : 0)) * 0x1p-12f;
        p[i] = (float)oct_check_below(t, 100) * 0.125f - 6.0f;
        if (i >= 600 && i % 7 == 0) {
            x[i] = rare[oct_check_below(t, OCT_COUNT(rare))];
            p[i] = powers[oct_check_below(t, OCT_COUNT(powers))];
        }
    }
    for (size_t k = 0; k < OCT_COUNT(turns); k++) {
        const oct_unary f = { turns[k].op, 0, 0 };
        oct_unary_f32(NULL, &f, x, y, N);
        for (size_t i = 0; i < N; i++) {
            const float want = turns[k].f(x[i]), one = oct_unary_value(&f, x[i]);
            oct_check_wrong(t,
                            y[i] == y[i] ? memcmp(&y[i], &one, 4) != 0 || !(fabsf(y[i] - want) <= 2e-7f * fabsf(want))
                                         : want == want,
                            "unary %d of %g: %g, want %g", f.op, (double)x[i], (double)y[i], (double)want);
        }
    }
    for (size_t k = 0; k <= OCT_COUNT(powers); k++) {
        const bool one = k < OCT_COUNT(powers);
        oct_binary_f32(NULL, OCT_BINARY_POW, x, 1, one ? powers + k : p, !one, y, N);
        for (size_t i = 0; i < N; i++) {
            const float e = one ? powers[k] : p[i], want = powf(x[i], e), own = oct_powf(x[i], e);
            oct_check_wrong(t,
                            y[i] == y[i]
                                ? memcmp(&y[i], &own, 4) != 0 ||
                                      (y[i] != want && !(fabsf(y[i] - want) <= 2e-7f * fabsf(want) + 0x1p-149f))
                                : want == want,
                            "%g to the %g: %g, want %g", (double)x[i], (double)e, (double)y[i], (double)want);
        }
    }
    static const float divisors[] = { 0.5f, -0.3f, 1e-30f, 1e-45f, 7.0f, 3e38f, INFINITY, 0.0f, NAN };
    for (size_t k = 0; k < OCT_COUNT(divisors); k++)
        for (int sign = 0; sign < 2; sign++) {
            oct_binary_f32(NULL, sign ? OCT_BINARY_MOD : OCT_BINARY_FMOD, x, 1, divisors + k, 0, y, N);
            for (size_t i = 0; i < N; i++) {
                const float want = binary_ref(sign ? OCT_BINARY_MOD : OCT_BINARY_FMOD, x[i], divisors[k]);
                oct_check_wrong(t, y[i] == y[i] ? memcmp(&y[i], &want, 4) != 0 : want == want, "%g mod %g: %g, want %g",
                                (double)x[i], (double)divisors[k], (double)y[i], (double)want);
            }
        }
    oct_check_release(t);
}

/* ------------------------------------------------------------------ broadcasting */

static int64_t random_shape(oct_check *t, int64_t *d, int rank)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= d[i] = 1 + (int64_t)oct_check_below(t, 5);
    return n;
}

/* The operand's shape: the output's, some leading dimensions missing and some of length 1. */
static int operand_shape(oct_check *t, const int64_t *y, int rank, int64_t *d)
{
    const int r = rank - (int)oct_check_below(t, (size_t)rank + 1);
    for (int i = 0; i < r; i++)
        d[i] = oct_check_below(t, 3) == 0 ? 1 : y[rank - r + i];
    return r;
}

static int64_t operand_index(const int64_t *at, int rank, const int64_t *d, int r)
{
    int64_t k = 0;
    for (int i = 0; i < r; i++)
        k = k * d[i] + (d[i] == 1 ? 0 : at[rank - r + i]);
    return k;
}

static void unravel(int64_t k, const int64_t *d, int rank, int64_t *at)
{
    for (int i = rank - 1; i >= 0; i--, k /= i >= 0 ? d[i + 1] : 1)
        at[i] = k % d[i];
}

/* N C H W dimensions of channels-last tensors: equal layouts become one row, a value per channel rows of channels. */
static void values_collapse(oct_check *t)
{
    enum { C = 8, H = 5, W = 7 };
    const oct_broadcast whole = {
        4, { 1, C, H, W }, { C * H * W, 1, W * C, C }, { C * H * W, 1, W * C, C }, { C * H * W, 1, W * C, C }
    };
    oct_broadcast b = whole, per_channel = whole;
    oct_broadcast_collapse(&b);
    oct_check_wrong(t, b.rank != 1 || b.dims[0] != C * H * W || b.sa[0] != 1 || b.sb[0] != 1 || b.sy[0] != 1,
                    "channels last: rank %d, %d in a row", b.rank, (int)b.dims[b.rank - 1]);
    memcpy(per_channel.sb, (int64_t[]){ 0, 1, 0, 0 }, 4 * sizeof(int64_t));
    float a[C * H * W], c[C], want[C * H * W], got[C * H * W];
    oct_fill_f32(t, a, C * H * W);
    oct_fill_f32(t, c, C);
    for (int i = 0; i < C * H * W; i++)
        want[i] = a[i] + c[i % C];
    oct_binary_f32_nd(t->pool, OCT_BINARY_ADD, &per_channel, a, c, got);
    oct_check_same(t, want, got, sizeof got, 4, "a value per channel");
    oct_broadcast_collapse(&per_channel);
    oct_check_wrong(t, per_channel.rank != 2 || per_channel.dims[1] != C || per_channel.sy[1] != 1,
                    "a value per channel: rank %d, %d in a row", per_channel.rank,
                    (int)per_channel.dims[per_channel.rank - 1]);
}

static void values_binary(oct_check *t)
{
    for (int round = 0; round < 600; round++) {
        const int rank = 1 + (int)oct_check_below(t, 6), op = round % OCT_BINARY_COUNT;
        int64_t shape[8], da[8], db[8], at[8];
        random_shape(t, shape, rank);
        const int ra = operand_shape(t, shape, rank, da), rb = operand_shape(t, shape, rank, db);
        oct_broadcast b;
        t->cases++;
        if (op == OCT_BINARY_POW || !oct_broadcast_shapes(&b, da, ra, db, rb))
            continue;
        int64_t n = 1;
        for (int i = 0; i < b.rank; i++)
            n *= b.dims[i];
        float *a = floats(t, 16000), *c = floats(t, 16000), *want = floats(t, (size_t)n), *got = floats(t, (size_t)n);
        oct_fill_f32(t, a, 16000);
        oct_fill_f32(t, c, 16000);
        for (int64_t i = 0; i < n; i++) {
            unravel(i, b.dims, b.rank, at);
            want[i] = binary_ref(op, a[operand_index(at, b.rank, da, ra)], c[operand_index(at, b.rank, db, rb)]);
        }
        oct_binary_f32_nd(t->pool, (oct_binary_op)op, &b, a, c, got);
        oct_check_same(t, want, got, (size_t)n * 4, 4, "broadcast op %d rank %d", op, rank);
        oct_check_release(t);
    }
    /* A row long enough to be cut, against a scalar. */
    enum { N = 40000 };
    float *a = floats(t, N), *want = floats(t, N), *got = floats(t, N), two = 2.0f;
    oct_fill_f32(t, a, N);
    for (size_t i = 0; i < N; i++)
        want[i] = a[i] - 2.0f;
    oct_broadcast b;
    oct_broadcast_shapes(&b, (int64_t[]){ N }, 1, NULL, 0);
    oct_binary_f32_nd(t->pool, OCT_BINARY_SUB, &b, a, &two, got);
    oct_check_same(t, want, got, N * 4, 4, "broadcast long row");
    oct_binary_f32(t->pool, OCT_BINARY_SUB, a, 1, &two, 0, got, N);
    oct_check_same(t, want, got, N * 4, 4, "binary long row");
    float lo = oct_unary_value(&(oct_unary){ OCT_UNARY_COPY }, 0.0f), nan = NAN;
    oct_binary_f32(NULL, OCT_BINARY_MAX, &nan, 1, &lo, 1, got, 1);
    oct_binary_f32(NULL, OCT_BINARY_MIN, &lo, 1, &nan, 1, got + 1, 1);
    oct_check_wrong(t, got[0] == got[0] || got[1] == got[1], "larger or smaller of NaN and a number: %g, %g",
                    (double)got[0], (double)got[1]);
    oct_check_release(t);
}

/* ------------------------------------------------------------------ reductions */

static double reduce_ref(int op, const float *x, size_t n, size_t stride)
{
    double sum = 0, squares = 0, abs = 0, prod = 1, most = -INFINITY, least = INFINITY, e = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i * stride];
        sum += v, squares += v * v, abs += fabs(v), prod *= v;
        most = v > most ? v : most, least = v < least ? v : least;
    }
    for (size_t i = 0; i < n; i++)
        e += exp((double)x[i * stride] - most);
    const double of[] = {
        sum, sum / (double)n, most, least, squares, abs, sqrt(squares), log(sum), most + log(e), prod
    };
    return of[op];
}

/* Integers, so that every sum is exact. */
static void values_squared_error(oct_check *t)
{
    for (size_t n = 0; n < 300; n += 1 + n / 7) {
        float *x = floats(t, n), *y = floats(t, n);
        double want = 0, squares = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = (float)oct_check_below(t, 100000);
            y[i] = -(float)oct_check_below(t, 3000);
            squares += (double)x[i] * (double)x[i];
            want += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        }
        const double got = oct_squared_error_f32(x, y, n);
        oct_check_wrong(t, got != want, "squared error of %zu: %g, not %g", n, got, want);
        oct_check_wrong(t, oct_sum_squares_f32(x, n) != squares, "sum of %zu squares, not %g", n, squares);
        oct_check_release(t);
    }
}

static void values_reduce(oct_check *t)
{
    static double want[400];
    for (int round = 0; round < 300; round++) {
        const int op = round % OCT_REDUCE_COUNT;
        const size_t outer = 1 + oct_check_below(t, 3), n = 1 + oct_check_below(t, 300);
        const size_t inner = round % 3 ? 1 + oct_check_below(t, 130) : 1;
        float *x = floats(t, outer * n * inner), *y = floats(t, outer * inner), *z = floats(t, outer * inner);
        oct_fill_f32(t, x, outer * n * inner);
        for (size_t i = 0; i < outer * n * inner; i++)
            x[i] = op == OCT_REDUCE_LOG_SUM ? fabsf(x[i]) + 0.1f : op == OCT_REDUCE_PROD ? 1.0f + x[i] * 0.01f : x[i];
        for (size_t i = 0; i < outer * inner; i++)
            want[i] = reduce_ref(op, x + i / inner * n * inner + i % inner, n, inner);
        oct_reduce_f32(NULL, (oct_reduce_op)op, x, outer, n, inner, y);
        oct_reduce_f32(t->pool, (oct_reduce_op)op, x, outer, n, inner, z);
        near(t, y, want, outer * inner, 1e-5, 1e-5, "reduce");
        oct_check_same(t, y, z, outer * inner * 4, 4, "reduce with threads");
        oct_check_release(t);
    }
}

static void values_softmax(oct_check *t)
{
    static double want[3 * 200 * 70];
    for (int round = 0; round < 60; round++) {
        const size_t outer = 1 + oct_check_below(t, 3), n = 1 + oct_check_below(t, 200);
        const size_t inner = round % 3 ? 1 + oct_check_below(t, 70) : 1, all = outer * n * inner;
        float *x = floats(t, all), *y = floats(t, all);
        oct_fill_f32(t, x, all);
        for (size_t i = 0; i < all; i++)
            x[i] *= 20.0f;
        for (size_t i = 0; i < all; i++) {
            const float *col = x + i / (n * inner) * n * inner + i % inner;
            const double l = (double)x[i] - reduce_ref(OCT_REDUCE_LOG_SUM_EXP, col, n, inner);
            want[i] = round & 1 ? l : exp(l);
        }
        oct_softmax_f32(t->pool, round & 1, x, outer, n, inner, y);
        near(t, y, want, all, 4e-6, 4e-6, "softmax");
        oct_check_release(t);
    }
}

/* Many short rows give what each alone gives, also where values are not finite, and in place. */
static void values_softmax_short(oct_check *t)
{
    static const float odd[] = { INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e38f, -1e38f };
    for (int round = 0; round < 120; round++) {
        const size_t outer = 1 + oct_check_below(t, 300), n = 1 + oct_check_below(t, 10), all = outer * n;
        float *x = floats(t, all), *want = floats(t, all), *y = floats(t, all);
        oct_fill_f32(t, x, all);
        for (size_t i = 0; i < all; i++)
            x[i] = round % 3 == 2 && oct_check_below(t, 6) == 0 ? odd[oct_check_below(t, 7)] : x[i] * 20.0f;
        for (size_t i = 0; i < outer; i++)
            oct_softmax_f32(NULL, round & 1, x + i * n, 1, n, 1, want + i * n);
        oct_softmax_f32(t->pool, round & 1, x, outer, n, 1, y);
        oct_check_same(t, y, want, all * 4, 4, "softmax of short rows");
        oct_softmax_f32(NULL, round & 1, x, outer, n, 1, x);
        oct_check_same(t, x, want, all * 4, 4, "softmax of short rows in place");
        oct_check_release(t);
    }
}

/* Rows of x * scale + bias where biases mask some, or all, with -inf; rows stand apart, and what is between them
 * stays. */
static void values_scaled_softmax(oct_check *t)
{
    static double want[8 * 210];
    for (int round = 0; round < 60; round++) {
        const size_t rows = 1 + oct_check_below(t, 8), n = 1 + oct_check_below(t, 200), ld = n + oct_check_below(t, 10);
        const size_t step = round % 3 == 2 ? n : 0;
        float *x = floats(t, rows * ld), *bias = floats(t, rows * n), *y = floats(t, rows * ld);
        oct_fill_f32(t, x, rows * ld);
        oct_fill_f32(t, bias, rows * n);
        for (size_t i = 0; i < rows * n; i++)
            bias[i] = i % 5 == 0 || round % 20 == 1 ? -INFINITY : bias[i];
        for (size_t i = 0; i < rows * ld; i++)
            want[i] = (double)(y[i] = 123.0f);
        for (size_t i = 0; i < rows; i++) {
            double sum = 0;
            for (size_t j = 0; j < n; j++) {
                const double add = round % 3 ? (double)bias[i * step + j] : 0.0;
                sum += want[i * ld + j] = exp((double)x[i * ld + j] * 0.25 + add);
            }
            for (size_t j = 0; j < n; j++)
                want[i * ld + j] = sum > 0 ? want[i * ld + j] / sum : 0.0;
        }
        oct_softmax_scaled_f32(t->pool, x, rows, n, ld, 0.25f, round % 3 ? bias : NULL, step, y);
        near(t, y, want, rows * ld, 2e-6, 1e-7, "scaled softmax");
        oct_check_release(t);
    }
}

/* The cell in one pass has the bits of the functions one by one, also where it takes their shorter forms, and at the
 * ends of these. */
static void values_lstm(oct_check *t)
{
    static const float spread[] = { 1.0f, 10.0f, 86.9f, 87.0f, 87.1f, 200.0f };
    const oct_unary sigmoid = { OCT_UNARY_SIGMOID, 0, 0 }, hyperbolic = { OCT_UNARY_TANH, 0, 0 };
    for (size_t round = 0; round < 20 * OCT_COUNT(spread); round++) {
        const size_t n = 1 + oct_check_below(t, 80);
        float *g = floats(t, 4 * n), *c = floats(t, n), *h = floats(t, n), *want_c = floats(t, n),
              *want_h = floats(t, n);
        oct_fill_f32(t, g, 4 * n);
        oct_fill_f32(t, c, n);
        for (size_t j = 0; j < 4 * n; j++)
            g[j] = oct_check_below(t, 40) ? g[j] * spread[round % OCT_COUNT(spread)]
                   : j % 2                ? spread[round % OCT_COUNT(spread)]
                                          : -0.0f;
        if (round % 10 == 9)
            g[oct_check_below(t, 4 * n)] = round % 20 == 9 ? INFINITY : -INFINITY;
        for (size_t j = 0; j < n; j++) {
            const float kept = oct_unary_value(&sigmoid, g[2 * n + j]) * c[j];
            want_c[j] = kept + oct_unary_value(&sigmoid, g[j]) * oct_unary_value(&hyperbolic, g[3 * n + j]);
            want_h[j] = oct_unary_value(&sigmoid, g[n + j]) * oct_unary_value(&hyperbolic, want_c[j]);
        }
        oct_lstm_f32(g, n, c, h);
        oct_check_same(t, want_c, c, n * sizeof *c, sizeof *c, "lstm cell, c of %zu units, gates up to %g", n,
                       (double)spread[round % OCT_COUNT(spread)]);
        oct_check_same(t, want_h, h, n * sizeof *h, sizeof *h, "lstm cell, h of %zu units, gates up to %g", n,
                       (double)spread[round % OCT_COUNT(spread)]);
        oct_check_release(t);
    }
}

static void values_norm(oct_check *t)
{
    static double want[4 * 60 * 80];
    for (int round = 0; round < 60; round++) {
        const size_t n = 1 + oct_check_below(t, 4), hw = 1 + oct_check_below(t, 60), c = 1 + oct_check_below(t, 80);
        const size_t all = n * hw * c;
        float *x = floats(t, all), *y = floats(t, all), *z = floats(t, all), *planes = floats(t, all);
        float *g = floats(t, c), *b = floats(t, c), *scratch = floats(t, n * 2 * c);
        oct_fill_f32(t, x, all);
        oct_fill_f32(t, g, c);
        oct_fill_f32(t, b, c);
        for (size_t i = 0; i < all; i++) {
            const float *col = x + i / (hw * c) * hw * c + i % c;
            const double mean = reduce_ref(OCT_REDUCE_MEAN, col, hw, c);
            double var = 0;
            for (size_t k = 0; k < hw; k++)
                var += ((double)col[k * c] - mean) * ((double)col[k * c] - mean) / (double)hw;
            want[i] = ((double)x[i] - mean) / sqrt(var + 1e-5) * (double)g[i % c] + (double)b[i % c];
        }
        oct_instance_norm_nhwc_f32(t->pool, x, n, hw, c, 1e-5f, g, b, scratch, y);
        near(t, y, want, all, 1e-5, 2e-4, "instance norm");
        /* Channels first gives the same bits. */
        const oct_layer_norm p = { n * c, hw, 1e-5f, g, b, true, c, false };
        oct_transpose_2d(NULL, x, n, hw, c, 4, planes);
        oct_layer_norm_f32(t->pool, &p, planes, planes, NULL, NULL);
        oct_transpose_2d(t->pool, planes, n, c, hw, 4, z);
        oct_check_same(t, y, z, all * 4, 4, "instance norm, both layouts");
        oct_scale_shift_f32(t->pool, x, n * hw, c, 1, g, b, y);
        oct_scale_shift_f32(t->pool, x, n * hw, c, 1, g, b, z);
        for (size_t i = 0; i < all; i++)
            z[i] = fmaf(x[i], g[i % c], b[i % c]);
        oct_check_same(t, z, y, all * 4, 4, "scale and shift");
        oct_check_release(t);
    }
}

static void values_groups(oct_check *t)
{
    static double want[2 * 4 * 5 * 300];
    for (int round = 0; round < 40; round++) {
        const size_t n = 1 + oct_check_below(t, 2), groups = 1 + oct_check_below(t, 4),
                     each = 1 + oct_check_below(t, 5), hw = 1 + oct_check_below(t, 300), row = each * hw,
                     all = n * groups * row;
        float *x = floats(t, all), *y = floats(t, all), *z = floats(t, all);
        float *g = floats(t, groups * each), *b = floats(t, groups * each);
        const oct_group_norm p = { n * groups, groups, each, hw, 1e-5f, g, b, round % 2 };
        oct_fill_f32(t, x, all);
        oct_fill_f32(t, g, groups * each);
        oct_fill_f32(t, b, groups * each);
        for (size_t i = 0; i < all; i++) {
            const float *v = x + i / row * row;
            const size_t at = round % 2 ? i / row % groups : i / hw % (groups * each);
            double mean = 0, var = 0;
            for (size_t k = 0; k < row; k++)
                mean += (double)v[k] / (double)row;
            for (size_t k = 0; k < row; k++)
                var += ((double)v[k] - mean) * ((double)v[k] - mean) / (double)row;
            want[i] = ((double)x[i] - mean) / sqrt(var + (double)p.eps) * (double)g[at] + (double)b[at];
        }
        oct_group_norm_f32(NULL, &p, x, y);
        oct_group_norm_f32(t->pool, &p, x, z);
        near(t, y, want, all, 1e-6, 1e-6, "group norm");
        oct_check_same(t, y, z, all * sizeof *y, 4, "group norm with threads");
        oct_check_release(t);
    }
}

/* ------------------------------------------------------------------ integers */

static int32_t saturate(double v, int32_t lo, int32_t hi)
{
    return v < lo ? lo : v > hi ? hi : (int32_t)v;
}

static int32_t qval_at(const void *q, oct_dtype d, size_t i)
{
    switch (d) {
    case OCT_U8: return ((const uint8_t *)q)[i];
    case OCT_S8: return ((const int8_t *)q)[i];
    case OCT_U16: return ((const uint16_t *)q)[i];
    default: return ((const int16_t *)q)[i];
    }
}

/* What is left of a column when it is rounded by parameters, with the scale that fits best; *fit: this scale. */
static double left_by(const float *x, size_t n, float scale, int zero, int top, double *fit)
{
    double ee = 0, ed = 0, dd = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)(x[i * OCT_QPARAMS_COLUMNS] * (1.0f / scale));
        const int d = saturate(nearbyint(v), -zero, top - zero);
        ee += (v - d) * (v - d);
        ed += (v - d) * d;
        dd += (double)d * d;
    }
    *fit = dd > 0 ? (double)scale * (1 + ed / dd) : 0;
    return dd > 0 ? (double)scale * (double)scale * (ee - ed * ed / dd) : (double)INFINITY;
}

/* The least that is left by the parameters that the header names. */
static double least_left(const float *x, size_t n, int top, bool symmetric)
{
    double lo = 0, hi = 0, least = 0, fit;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i * OCT_QPARAMS_COLUMNS];
        lo = fmin(lo, v);
        hi = fmax(hi, v);
        least += v * v;
    }
    const float step = (float)hi / (float)top - (float)lo / (float)top, far = (float)(hi > -lo ? hi : lo);
    const int zero = step > 0 ? (int)nearbyintf(-(float)lo / step) : 0, middle = (top + 1) / 2;
    for (int c = 0; c < 5 && step > 0; c++) {
        const float cut = 1.0f - 0.05f * (float)c;
        for (int off = -1; off <= 1 && !symmetric; off++)
            least = fmin(least, left_by(x, n, step * cut, saturate(zero + off, 0, top), top, &fit));
        least = fmin(least, left_by(x, n, far / (float)-middle * cut, middle, top, &fit));
        least = fmin(least, left_by(x, n, far / (float)(middle - 1) * cut, middle, top, &fit));
    }
    return least;
}

/* Nothing that is tried leaves less, and what is said of the choice is so, within what a chain of floats can lose. */
static void values_column_qparams(oct_check *t)
{
    for (int round = 0; round < 60; round++) {
        const size_t n = 1 + oct_check_below(t, 300);
        const int top = round % 2 ? 15 : 255;
        float *x = floats(t, n * OCT_QPARAMS_COLUMNS);
        const size_t even = n / 2 * 2, bits = top == 15 ? 4 : 8;
        uint8_t *q = oct_check_buffer(t, n * OCT_QPARAMS_COLUMNS),
                *packed = oct_check_buffer(t, n * OCT_QPARAMS_COLUMNS);
        oct_column_qparams g;
        size_t bad = 0;
        oct_fill_f32(t, x, n * OCT_QPARAMS_COLUMNS);
        for (size_t i = 0; i < n; i++) { /* of one sign, and none at all */
            x[i * OCT_QPARAMS_COLUMNS + 1] = fabsf(x[i * OCT_QPARAMS_COLUMNS + 1]);
            x[i * OCT_QPARAMS_COLUMNS + 2] = 0;
        }
        oct_choose_columns_f32(x, n, top, round % 3 == 0, &g);
        oct_quantize_columns_f32(x, n, top, &g, q);
        oct_pack_columns(q, even, (int)bits, OCT_QPARAMS_COLUMNS, packed, even * bits / 8);
        for (size_t j = 0; j < OCT_QPARAMS_COLUMNS; j++) {
            double squares = 0, fit;
            for (size_t i = 0; i < n; i++) {
                const float v = x[i * OCT_QPARAMS_COLUMNS + j];
                squares += (double)v * (double)v;
                bad += q[i * OCT_QPARAMS_COLUMNS + j] !=
                       g.zero[j] + saturate(nearbyint((double)(v * (1.0f / g.scale[j]))), -g.zero[j], top - g.zero[j]);
            }
            for (size_t i = 0; i < even; i++) {
                const uint8_t byte = packed[j * even * bits / 8 + i * bits / 8];
                bad += q[i * OCT_QPARAMS_COLUMNS + j] != (bits == 8 ? byte : i % 2 ? byte >> 4 : byte & 15);
            }
            const double bound = squares * (double)(n + 8) * 0x1p-22;
            bad += fabs(g.signal[j] - squares) > squares * 1e-12;
            bad += fabs(g.error[j] - least_left(x + j, n, top, round % 3 == 0)) > bound;
            if (g.fit[j] != 1)
                bad += fabs(g.error[j] - left_by(x + j, n, g.scale[j], g.zero[j], top, &fit)) > bound ||
                       fabs((double)g.fit[j] - fit) > fabs(fit) * (double)(n + 8) * 0x1p-22;
            else
                bad += g.error[j] != g.signal[j] || g.scale[j] != 1 || g.zero[j] != (top + 1) / 2;
        }
        oct_check_wrong(t, bad, "parameters of %zu rows: %zu of what is said differ", n, bad);
        oct_check_release(t);
    }
}

/* By the definition, in double where that is exact; values of all sizes, and blocks of zeros, of almost nothing, and
 * with NaN or infinity. */
static void values_blocks(oct_check *t)
{
    for (int round = 0; round < 200; round++) {
        const size_t n = 1 + oct_check_below(t, 300), block = (size_t)16 << oct_check_below(t, 5),
                     blocks = (n + block - 1) / block;
        float *x = floats(t, n), *scale = floats(t, blocks);
        int8_t *q = oct_check_buffer(t, blocks * block);
        int32_t *sum = oct_check_buffer(t, blocks * 4);
        oct_fill_f32(t, x, n);
        const float size = round % 5 == 0 ? 0x1p-101f : round % 5 == 1 ? 0x1p90f : round % 5 == 2 ? 0 : 3;
        for (size_t i = 0; i < n; i++)
            x[i] = (x[i] > 1 ? 1 : x[i] < -1 ? -1 : x[i]) * size;
        if (round % 7 == 0)
            x[oct_check_below(t, n)] = round % 2 ? NAN : -INFINITY;
        oct_quantize_blocks_s8(x, n, block, q, scale, sum);
        size_t bad = 0;
        for (size_t b = 0; b < blocks; b++) {
            float most = 0;
            bool finite = true;
            int32_t all = 0;
            for (size_t i = b * block; i < n && i < (b + 1) * block; i++) {
                finite &= isfinite(x[i]) != 0;
                most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
            }
            const bool none = !finite || most < 0x1p-100f;
            for (size_t i = b * block; i < (b + 1) * block; i++) {
                const int want = none || i >= n ? 0 : (int)nearbyintf((float)((double)x[i] * (double)(127.0f / most)));
                bad += q[i] != want;
                all += want;
            }
            bad += all != sum[b] || (finite ? scale[b] != (none ? 0 : most / 127.0f) : !isnan(scale[b]));
        }
        oct_check_wrong(t, bad, "%zu values in blocks of %zu: %zu quantized values, sums and scales differ", n, block,
                        bad);
        oct_check_release(t);
    }
}

static void values_quantize(oct_check *t)
{
    static const oct_dtype types[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 };
    for (int round = 0; round < 120; round++) {
        const oct_dtype d = types[round % 4];
        const size_t outer = 1 + oct_check_below(t, 3), ch = 1 + oct_check_below(t, 40), inner = round % 3 ? 1 : 37;
        const size_t all = outer * ch * inner;
        float *x = floats(t, all), *s = floats(t, ch), *back = floats(t, all);
        int32_t *z = oct_check_buffer(t, ch * 4), lo, hi;
        void *q = oct_check_buffer(t, all * 2);
        oct_quant_limits(d, &lo, &hi);
        oct_fill_f32(t, x, all);
        for (size_t c = 0; c < ch; c++) {
            s[c] = c % 2 ? 0.25f : 0.01f + (float)c * 0.003f;
            z[c] = lo + (int32_t)oct_check_below(t, (size_t)(hi - lo + 1));
        }
        for (size_t i = 0; i < all; i++) {
            x[i] *= i % 2 ? 300.0f : 20.0f;
            x[i] = i % 3 ? x[i] : ((float)(int)x[i] + 0.5f) * 0.25f; /* ties where the scale is 0.25 */
        }
        oct_quantize_f32_axis(t->pool, d, x, outer, ch, inner, s, z, q);
        oct_dequantize_f32_axis(t->pool, d, q, outer, ch, inner, s, z, back);
        size_t bad = 0;
        for (size_t i = 0; i < all; i++) {
            const size_t c = i / inner % ch;
            const int32_t want = saturate(nearbyint((double)(x[i] / s[c])) + z[c], lo, hi), got = qval_at(q, d, i);
            bad += want != got || want != oct_quantize_value(x[i], s[c], z[c], lo, hi) ||
                   back[i] != (float)(want - z[c]) * s[c];
        }
        oct_check_wrong(t, bad, "quantize %s: %zu of %zu differ", oct_dtype_name(d), bad, all);
        memcpy(back, x, all * sizeof *back);
        oct_fake_quantize_f32(d, back, all, s[0], z[0], back);
        for (size_t i = bad = 0; i < all; i++)
            bad += back[i] != (float)(saturate(nearbyint((double)(x[i] / s[0])) + z[0], lo, hi) - z[0]) * s[0];
        oct_check_wrong(t, bad, "fake quantize %s: %zu of %zu differ", oct_dtype_name(d), bad, all);
        oct_check_release(t);
    }
    uint8_t q[4], zp;
    float scale;
    oct_dynamic_quantize_u8(NULL, (const float[]){ -1.0f, 0.0f, 1.0f, 3.0f }, 4, q, &scale, &zp);
    oct_check_wrong(t, scale != 4.0f / 255.0f || zp != 64 || q[0] != 0 || q[1] != 64 || q[2] != 128 || q[3] != 255,
                    "dynamic quantization: %g %d: %d %d %d %d", (double)scale, zp, q[0], q[1], q[2], q[3]);
}

/* All pairs of quantized values. The fma of the definition is written out in double, which is exact for the inner
 * product. */
static void values_qbinary(oct_check *t)
{
    for (int kind = 0; kind < 4; kind++) {
        const bool sgn = kind & 1;
        const int32_t lo = sgn ? -128 : 0, hi = sgn ? 127 : 255;
        const oct_qbinary f = { kind & 2 ? OCT_QBINARY_MUL : OCT_QBINARY_ADD,
                                sgn,
                                { 0.0213f, lo + 100 },
                                { 0.0571f, lo + 17 },
                                { 0.0613f, lo + 130 },
                                lo,
                                hi };
        uint8_t *a = oct_check_buffer(t, 65536), *b = oct_check_buffer(t, 65536);
        uint8_t *want = oct_check_buffer(t, 65536), *got = oct_check_buffer(t, 65536);
        const float ra = f.a.scale / f.y.scale, rb = f.b.scale / f.y.scale, m = f.a.scale * f.b.scale / f.y.scale;
        const float k = (float)f.y.zp - fmaf(ra, (float)f.a.zp, rb * (float)f.b.zp);
        for (int i = 0; i < 65536; i++) {
            a[i] = (uint8_t)(i >> 8), b[i] = (uint8_t)i;
            const int32_t p = sgn ? (int8_t)a[i] : a[i], q = sgn ? (int8_t)b[i] : b[i];
            const float u = (float)((double)q * (double)rb + (double)k),
                        v = (float)((double)p * (double)ra + (double)u);
            const float w = (float)((p - f.a.zp) * (q - f.b.zp)) * m + (float)f.y.zp;
            want[i] = (uint8_t)saturate(nearbyint((double)(kind & 2 ? w : v)), lo, hi);
        }
        oct_broadcast s;
        oct_broadcast_shapes(&s, (int64_t[]){ 65536 }, 1, (int64_t[]){ 65536 }, 1);
        oct_qbinary_8_nd(t->pool, &f, &s, a, b, got);
        oct_check_same(t, want, got, 65536, 1, "qbinary kind %d", kind);
        oct_broadcast_shapes(&s, (int64_t[]){ 256, 1 }, 2, (int64_t[]){ 256 }, 1);
        for (int i = 0; i < 256; i++)
            a[i] = (uint8_t)i;
        oct_qbinary_8_nd(t->pool, &f, &s, a, b, got);
        oct_check_same(t, want, got, 65536, 1, "qbinary broadcast kind %d", kind);
        oct_check_release(t);
    }
}

static void values_tables(oct_check *t)
{
    uint8_t table[256], x[256], y[256], want[256];
    const oct_unary f = { OCT_UNARY_LEAKY_RELU, 0.1f, 0 };
    for (int i = 0; i < 256; i++) {
        x[i] = (uint8_t)i;
        const float v = (float)((int8_t)x[i] + 3) * 0.05f;
        want[i] = (uint8_t)saturate(nearbyint((double)((v < 0 ? 0.1f * v : v) / 0.04f)) + 20, 20, 255);
    }
    oct_lut_build(&f, true, (oct_qparam){ 0.05f, -3 }, false, (oct_qparam){ 0.04f, 20 }, 20, 255, table);
    oct_lut_8(t->pool, table, x, y, 256);
    oct_check_same(t, want, y, 256, 1, "table of LeakyRelu clamped at zero");
    for (int round = 0; round < 20; round++) {
        const size_t n = 1 + oct_check_below(t, 256);
        oct_fill_bytes(t, x, n);
        oct_qsoftmax_8(NULL, false, x, 1, n, (oct_qparam){ 0.1f, 7 }, (oct_qparam){ 1.0f / 256, 0 }, y);
        double sum = 0, worst = 0;
        for (size_t i = 0; i < n; i++)
            sum += exp(0.1 * x[i]);
        for (size_t i = 0; i < n; i++)
            worst = fmax(worst, fabs(fmin(256 * exp(0.1 * x[i]) / sum, 255) - y[i]));
        oct_check_wrong(t, worst > 0.501, "softmax of %zu values: %.3f steps off", n, worst);
    }
}

/* ------------------------------------------------------------------ pooling */

typedef struct pool_sums {
    double sum, squares;
    float most;
    int64_t exact, inside, padded;
} pool_sums;

static pool_sums window_ref(const oct_pool2d *g, const float *x, const uint8_t *q, size_t at)
{
    pool_sums s = { 0, 0, -FLT_MAX, 0, 0, 0 };
    const size_t c = at % g->c, ox = at / g->c % g->ow, oy = at / g->c / g->ow % g->oh, n = at / g->c / g->ow / g->oh;
    for (size_t i = 0; i < g->kh; i++)
        for (size_t j = 0; j < g->kw; j++) {
            const int64_t y = (int64_t)(oy * g->sh + i * g->dh) - (int64_t)g->pt;
            const int64_t z = (int64_t)(ox * g->sw + j * g->dw) - (int64_t)g->pl;
            s.padded += y < (int64_t)(g->h + g->pb) && z < (int64_t)(g->w + g->pr);
            if (y < 0 || z < 0 || y >= (int64_t)g->h || z >= (int64_t)g->w)
                continue;
            const size_t k = ((n * g->h + (size_t)y) * g->w + (size_t)z) * g->c + c;
            s.inside++;
            s.exact += q[k];
            s.sum += (double)x[k];
            s.squares += (double)x[k] * (double)x[k];
            s.most = x[k] > s.most ? x[k] : s.most;
        }
    return s;
}

static void values_pool(oct_check *t)
{
    static double average[40000], lp[40000];
    for (int round = 0; round < 100; round++) {
        oct_pool2d g = { .n = 1 + oct_check_below(t, 2),
                         .h = 1 + oct_check_below(t, 9),
                         .w = 1 + oct_check_below(t, 9),
                         .c = 1 + oct_check_below(t, 40),
                         .kh = 1 + oct_check_below(t, 3),
                         .kw = 1 + oct_check_below(t, 3),
                         .sh = 1 + oct_check_below(t, 2),
                         .sw = 1 + oct_check_below(t, 2),
                         .dh = 1 + oct_check_below(t, 2),
                         .dw = 1 + oct_check_below(t, 2),
                         .count_include_pad = round & 1 };
        g.pt = oct_check_below(t, g.kh), g.pl = oct_check_below(t, g.kw), g.pb = g.kh - 1 - g.pt,
        g.pr = g.kw - 1 - g.pl;
        g.oh = (g.h - 1) / g.sh + 1, g.ow = (g.w - 1) / g.sw + 1;
        const size_t in = g.n * g.h * g.w * g.c, out = g.n * g.oh * g.ow * g.c;
        const oct_qparam qx = { 0.5f, 10 }, qy = { 0.25f, 30 };
        float *x = floats(t, in), *y = floats(t, out), *most = floats(t, out);
        uint8_t *q = oct_check_buffer(t, in), *qm = oct_check_buffer(t, out), *qw = oct_check_buffer(t, out);
        oct_fill_f32(t, x, in);
        for (size_t i = 0; i < in; i++)
            q[i] = (uint8_t)(int)(x[i] * 50 + 100);
        for (size_t i = 0; i < out; i++) {
            const pool_sums s = window_ref(&g, x, q, i);
            const int64_t count = g.count_include_pad ? s.padded : s.inside;
            average[i] = s.sum / (double)(count ? count : 1), lp[i] = sqrt(s.squares), most[i] = s.most;
            const float mean = (float)(s.exact - s.inside * qx.zp) * qx.scale / (float)(count ? count : 1);
            qw[i] = (uint8_t)saturate(nearbyint((double)(mean / qy.scale + (float)qy.zp)), 0, 255);
        }
        oct_average_pool_f32(t->pool, &g, x, y);
        near(t, y, average, out, 1e-5, 1e-6, "average pool");
        oct_lp_pool_f32(t->pool, &g, 2.0f, x, y);
        near(t, y, lp, out, 1e-5, 1e-6, "lp pool");
        oct_max_pool_f32(t->pool, &g, x, y);
        oct_check_same(t, most, y, out * 4, 4, "max pool");
        oct_average_pool_8(t->pool, &g, false, q, qx, qy, qm);
        oct_check_same(t, qw, qm, out, 1, "average pool 8");
        oct_check_release(t);
    }
}

static void values_global(oct_check *t)
{
    for (int round = 0; round < 40; round++) {
        const size_t n = 2, hw = 1 + oct_check_below(t, 300), c = 1 + oct_check_below(t, 300);
        const bool sgn = round & 1;
        const oct_qparam in = { 0.021f, sgn ? -3 : 119 }, out = { 0.0171f, sgn ? 4 : 131 };
        uint8_t *q = oct_check_buffer(t, n * hw * c), *want = oct_check_buffer(t, n * c),
                *got = oct_check_buffer(t, n * c);
        oct_fill_bytes(t, q, n * hw * c);
        for (size_t i = 0; i < n * c; i++) {
            int32_t acc = 0;
            for (size_t k = 0; k < hw; k++) {
                const uint8_t v = q[(i / c * hw + k) * c + i % c];
                acc += (sgn ? (int8_t)v : v) - in.zp;
            }
            const float v = (float)acc * (in.scale / (out.scale * (float)hw));
            want[i] = (uint8_t)saturate(nearbyint((double)v) + out.zp, sgn ? -128 : 0, sgn ? 127 : 255);
        }
        oct_global_average_pool_8(t->pool, sgn, q, n, hw, c, in, out, got);
        oct_check_same(t, want, got, n * c, 1, "global average 8");
        oct_check_release(t);
    }
}

/* ------------------------------------------------------------------ moving */

static void shuffle(oct_check *t, int *perm, int rank)
{
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int j = (int)oct_check_below(t, (size_t)i + 1), v = perm[i];
        perm[i] = perm[j], perm[j] = v;
    }
}

static void values_transpose(oct_check *t)
{
    for (int round = 0; round < 400; round++) {
        const int rank = 1 + (int)oct_check_below(t, 6);
        const size_t size = (size_t)1 << round % 4;
        int64_t dims[8], out[8], at[8], from[8];
        int perm[8];
        size_t n = (size_t)random_shape(t, dims, rank);
        if (round % 5 == 0) { /* large enough for several tiles */
            dims[oct_check_below(t, (size_t)rank)] = 150;
            n = 1;
            for (int i = 0; i < rank; i++)
                n *= (size_t)dims[i];
        }
        shuffle(t, perm, rank);
        for (int i = 0; i < rank; i++)
            out[i] = dims[perm[i]];
        uint8_t *x = oct_check_buffer(t, n * size), *want = oct_check_buffer(t, n * size),
                *got = oct_check_buffer(t, n * size);
        oct_fill_bytes(t, x, n * size);
        for (size_t k = 0; k < n; k++) {
            unravel((int64_t)k, out, rank, at);
            for (int i = 0; i < rank; i++)
                from[perm[i]] = at[i];
            memcpy(want + k * size, x + (size_t)operand_index(from, rank, dims, rank) * size, size);
        }
        oct_transpose(t->pool, x, dims, perm, rank, size, got);
        oct_check_same(t, want, got, n * size, 1, "transpose rank %d size %zu", rank, size);
        oct_check_release(t);
    }
}

static void values_resize(oct_check *t)
{
    for (int round = 0; round < 100; round++) {
        const size_t outer = 1 + oct_check_below(t, 3), n_in = 1 + oct_check_below(t, 9),
                     n_out = 1 + oct_check_below(t, 20);
        const size_t inner = round % 3 ? 1 + oct_check_below(t, 40) : 1, all = outer * n_out * inner;
        const int taps = round % 2 ? 2 : 4;
        int32_t index[80];
        float *x = floats(t, outer * n_in * inner), *w = floats(t, 80), *want = floats(t, all), *got = floats(t, all);
        oct_fill_f32(t, x, outer * n_in * inner);
        oct_fill_f32(t, w, 80);
        for (int i = 0; i < 80; i++)
            index[i] = (int32_t)oct_check_below(t, n_in);
        for (size_t k = 0; k < all; k++) {
            const size_t i = k / inner % n_out;
            const float *col = x + k / inner / n_out * n_in * inner + k % inner;
            float v = 0;
            for (size_t p = i * (size_t)taps; p < (i + 1) * (size_t)taps; p++)
                v = p % (size_t)taps ? fmaf(col[(size_t)index[p] * inner], w[p], v)
                                     : col[(size_t)index[p] * inner] * w[p];
            want[k] = v;
        }
        oct_resize_axis_f32(t->pool, x, outer, n_in, inner, n_out, taps, index, w, got);
        oct_check_same(t, want, got, all * 4, 4, "resize");
        for (size_t k = 0; k < all; k++)
            want[k] = x[(k / inner / n_out * n_in + (size_t)index[k / inner % n_out]) * inner + k % inner];
        oct_resize_axis_f32(t->pool, x, outer, n_in, inner, n_out, 1, index, NULL, got);
        oct_check_same(t, want, got, all * 4, 4, "resize nearest");
        oct_check_release(t);
    }
}

void check_values(oct_check *t)
{
    values_unary(t);
    values_rare(t);
    values_collapse(t);
    values_binary(t);
    values_reduce(t);
    values_squared_error(t);
    values_softmax(t);
    values_softmax_short(t);
    values_scaled_softmax(t);
    values_lstm(t);
    values_norm(t);
    values_groups(t);
    values_quantize(t);
    values_column_qparams(t);
    values_blocks(t);
    values_qbinary(t);
    values_tables(t);
    values_pool(t);
    values_global(t);
    values_transpose(t);
    values_resize(t);
}
