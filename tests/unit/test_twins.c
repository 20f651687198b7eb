/* The arithmetic of other runtimes, against numbers that have more bits. Whole operators are compared with the runtimes
 * themselves in tests/checks/check_twins.py. */
#include "twins/fixed_point.h"
#include "twins/rescale.h"
#include "twins/twins.h"
#include "twins/wide/functions.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A generator of 31 bits. */
static int32_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int32_t)(*seed >> 33);
}

static int32_t bounded(uint64_t *seed)
{
    return next(seed) % 2000000 - 1000000;
}

/* Rounding once is the nearest integer to the product, half up. Rounding twice is at most one away, and not always the
 * same. In float it is the nearest one, too. */
TEST(test_rescale)
{
    uint64_t seed = 1;
    int apart = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        const float in = (float)(next(&seed) % 1000 + 1) / 1e4F, weights = (float)(next(&seed) % 1000 + 1) / 1e5F;
        const float out = (float)(next(&seed) % 1000 + 1) / 1e3F;
        const int32_t x = bounded(&seed);
        const double real = (double)in * (double)weights / (double)out, exact = (double)x * real;
        const oct_rescale fixed = oct_rescaling_single.of(in, weights, out),
                          number = oct_rescaling_float.of(in, weights, out);
        const int32_t once = oct_rescaling_single.to(&fixed, x, 0, INT32_MIN, INT32_MAX);
        const int32_t twice = oct_rescaling_double.to(&fixed, x, 0, INT32_MIN, INT32_MAX);
        if (fabs(exact - floor(exact) - 0.5) > 1e-3 && fabs(exact) < 1e4) {
            assert_int_equal(once, (int32_t)floor(exact + 0.5));
            assert_int_equal(oct_rescaling_float.to(&number, x, 0, -100000, 100000), once);
        }
        assert_true(abs(twice - once) <= 1);
        apart += twice != once;
    }
    assert_true(apart > 20);
}

TEST(test_bounds)
{
    const oct_rescale one = oct_rescaling_float.of(1, 1, 1), fixed = oct_rescaling_double.of(1, 1, 1);
    assert_int_equal(oct_rescaling_float.to(&one, INT32_MIN, -5, -128, 127), -128);
    assert_int_equal(oct_rescaling_float.to(&one, INT32_MAX, -5, -128, 127), 127);
    assert_int_equal(oct_rescaling_double.to(&fixed, 100, -5, -128, 90), 90);
    assert_int_equal(oct_rescaling_double.bound(6, 0.5F, -3), 9);
    assert_int_equal(oct_rescaling_double.bound(0.25F, 0.5F, 0), 1); /* half away from zero */
    assert_int_equal(oct_rescaling_float.bound(0.25F, 0.5F, 0), 0);  /* half to even */
    assert_int_equal(oct_rescaling_double.bound(1e30F, 1e-30F, 0), 127);
    assert_int_equal(oct_high_product(INT32_MIN, INT32_MIN), INT32_MAX);
    assert_int_equal(oct_divide_power(-3, 1), -2);
    assert_int_equal(oct_divide_power(5, 1), 3);
    assert_int_equal(oct_rescale_fixed(NAN).multiplier, 0);
    assert_int_equal(oct_rescale_fixed(1e-40).multiplier, 0);
}

/* Sums of 48 bits: by all 31 bits of the multiplier, or by 15 of them. */
TEST(test_sums)
{
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        const oct_rescale r = oct_rescale_fixed(ldexp(1 + (next(&seed) & 1023) / 1024.0, -(12 + next(&seed) % 30)));
        const int64_t x = ((int64_t)next(&seed) << 14 | (next(&seed) & 16383)) * (next(&seed) & 1 ? -1 : 1);
        const double whole = (double)x * ldexp((double)r.multiplier, r.shift - 31);
        const double cut = (double)x * ldexp((double)((r.multiplier + (1 << 15)) >> 16), r.shift - 15);
        if (fabs(whole) > 2e9)
            continue;
        assert_true(fabs(oct_rescaling_single.sum(&r, x) - whole) <= 0.5);
        assert_true(r.multiplier >= 0x7fff0000 || fabs(oct_rescaling_double.sum(&r, x) - cut) <= 0.5);
    }
}

TEST(test_fixed_point)
{
    for (int i = 0; i <= 4000; i++) {
        const double x = -i / 260.0;
        const int32_t q = (int32_t)lround(x * (1 << 26)), p = (int32_t)lround(x * (1 << 27));
        assert_true(fabs(oct_fixed_exp(32, q, 5) / 2147483648.0 - exp(x)) < 1e-6);
        for (int sign = -1; sign <= 1; sign += 2) {
            assert_true(fabs(oct_fixed_logistic(32, sign * p, 4) / 2147483648.0 - 1 / (1 + exp(-sign * x))) < 1e-6);
            assert_true(fabs(oct_fixed_tanh(32, sign * p, 4) / 2147483648.0 - tanh(sign * x)) < 1e-5);
        }
    }
    for (int32_t x = INT16_MIN; x <= INT16_MAX; x++) {
        const double real = x / 4096.0, logistic = 32768 / (1 + exp(-real)), tangent = 32768 * tanh(real);
        assert_true(fabs(oct_fixed_logistic(16, x, 3) - logistic) < 8);
        assert_true(fabs(oct_wide_logistic(x, 0, 0) - logistic) < 8);
        assert_true(fabs(oct_fixed_tanh(16, x, 3) - tangent) < 40);
        assert_true(fabs(oct_wide_tanh(x, 0, 0) - tangent) < 8);
    }
    assert_int_equal(oct_fixed_exp(16, -(33 << 8), 7), 0);
    assert_int_equal(oct_fixed_logistic(32, 0, 4), 1 << 30);
    assert_int_equal(oct_fixed_tanh(32, 0, 4), 0);
}

TEST(test_names)
{
    const oct_twin *t;
    oct_err e = OCT_ERR_INIT;
    (void)state;
    for (size_t i = 0; oct_twin_at(i); i++) {
        assert_int_equal(oct_twin_find(oct_twin_at(i)->name, &t, &e), OCT_OK);
        assert_ptr_equal(t, oct_twin_at(i));
    }
    assert_int_equal(oct_twin_find("litert-refrence", &t, &e), OCT_EUSAGE);
    assert_non_null(strstr(e.hint, "litert-reference"));
}

/* A model whose shapes and options do not fit is an error that names the operator, whatever they are. */
TEST(test_unfit)
{
    static const float scale[1] = { 0.5F };
    static const int32_t zero[1] = { 3 };
    static const oct_quant q = { .n = 1, .scale = scale, .zp = zero, .dtype = OCT_S8 };
    static const int8_t weights[64];
    static const oct_tfl_code codes[] = {
        OCT_TFL_CONV_2D, OCT_TFL_DEPTHWISE_CONV_2D, OCT_TFL_FULLY_CONNECTED, OCT_TFL_ADD,
        OCT_TFL_MEAN,    OCT_TFL_SOFTMAX,           OCT_TFL_SLICE,           OCT_TFL_TRANSPOSE,
        OCT_TFL_PAD,     OCT_TFL_MAX_POOL_2D,       OCT_TFL_RESIZE_BILINEAR, OCT_TFL_BATCH_MATMUL,
        OCT_TFL_SPLIT,   OCT_TFL_TRANSPOSE_CONV,    OCT_TFL_CONCATENATION,   OCT_TFL_GATHER
    };
    const oct_twin *t;
    (void)state;
    assert_int_equal(oct_twin_find("litert", &t, NULL), OCT_OK);
    for (size_t i = 0; i < OCT_COUNT(codes); i++)
        for (int rank = 0; rank <= 4; rank++) {
            oct_tfl_tensor tensor[3] = {
                { "x", OCT_TFL_INT8, rank, { 1, 3, 4, 2 }, .open = -1, .quant = &q },
                { "w", OCT_TFL_INT8, 2, { 4, 16 }, .open = -1, .quant = &q, .data = weights, .bytes = 64 },
                { "y", OCT_TFL_INT8, 3, { 5, 3, 7 }, .open = -1, .quant = &q }
            };
            int in[3] = { 0, 1, 1 }, out[1] = { 2 };
            oct_tfl_operator op = { .code = codes[i], .version = 1, .in = in, .out = out, .n_in = 3, .n_out = 1 };
            const oct_tfl_model m = { .tensor = tensor, .n_tensor = 3, .op = &op, .n_op = 1 };
            oct_err e = OCT_ERR_INIT;
            oct_twin_run *r;
            const oct_status s = oct_twin_open(t, &m, &r, &e);
            assert_true(s == OCT_EUNSUPPORTED || s == OCT_EMALFORMED);
            assert_null(r);
            assert_non_null(strstr(e.text, "'y'"));
        }
}

/* A file can ask for more work than ends: that is refused before it begins, by what the file says alone. */
TEST(test_work_is_bounded)
{
    float unit = 1;
    int32_t zero = 0;
    const oct_quant q = { .n = 1, .scale = &unit, .zp = &zero, .dtype = OCT_S8 };
    oct_tfl_tensor picture = { .name = "x", .type = OCT_TFL_INT8, .rank = 4, .dims = { 1, 4, 4, 1 }, .quant = &q };
    oct_tfl_tensor tensors[2] = { picture, picture };
    int in[1] = { 0 }, out[1] = { 1 };
    oct_tfl_operator pool = { .code = OCT_TFL_MAX_POOL_2D, .version = 2, .in = in, .out = out, .n_in = 1, .n_out = 1 };
    oct_tfl_model m = { .tensor = tensors, .n_tensor = 2, .op = &pool, .n_op = 1 };
    const oct_twin *litert;
    oct_twin_run *r;
    oct_err err = OCT_ERR_INIT;
    pool.field[0] = (oct_flat_field){ OCT_TFL_POOL_STRIDE_W, 4, 1 };
    pool.field[1] = (oct_flat_field){ OCT_TFL_POOL_STRIDE_H, 4, 1 };
    pool.field[2] = (oct_flat_field){ OCT_TFL_POOL_FILTER_W, 4, 3 };
    pool.field[3] = (oct_flat_field){ OCT_TFL_POOL_FILTER_H, 4, 3 };
    pool.n_fields = 4;
    assert_int_equal(oct_twin_find("litert", &litert, &err), OCT_OK);
    assert_int_equal(oct_twin_open(litert, &m, &r, &err), OCT_OK);
    oct_twin_close(r);
    assert_true(oct_twin_cost_of(&m).steps >= 16 * 9 && oct_twin_cost_of(&m).bytes == 32);
    pool.field[2].bits = pool.field[3].bits = INT32_MAX;
    assert_int_equal(oct_twin_open(litert, &m, &r, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "products and moves"));
    pool.field[2].bits = pool.field[3].bits = 3;
    for (int k = 0; k < 4; k++)
        tensors[0].dims[k] = 1 << 10;
    assert_int_equal(oct_twin_open(litert, &m, &r, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "bytes of tensors"));
    tensors[0].dims[0] = tensors[0].dims[1] = 1 << 20;
    tensors[0].dims[3] = 0; /* empty, with loops over the other axes */
    assert_int_equal(oct_twin_open(litert, &m, &r, &err), OCT_EUNSUPPORTED);
}
