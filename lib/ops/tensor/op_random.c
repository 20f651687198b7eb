/* lib/ops/tensor/op_random.c -- RandomUniform, RandomNormal, their Like forms, Bernoulli, Multinomial.
 *
 * Element i is a function of i, the node's seed (without a seed attribute its name is the seed) and the iteration of
 * the loops around it, so that every run, on any machine and with any batch, draws the same numbers, and a model and
 * its quantized form can be compared; the iterations of a loop draw different ones. */
#include "base/io.h"
#include "kernels/math.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ numbers */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In [0, 1), with 53 bits. */
static double uniform(uint64_t seed, uint64_t i)
{
    return (double)(mixed(seed + (i + 1) * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}

static double normal(uint64_t seed, uint64_t i)
{
    const double u = 1.0 - uniform(seed, 2 * i), v = uniform(seed, 2 * i + 1);
    return sqrt(-2.0 * oct_log(u)) * oct_cos(0x1.921fb54442d18p+2 * v);
}

static uint64_t node_seed(const oct_node *n)
{
    const float given = oct_node_float(n, "seed", 0.0f);
    uint32_t bits;
    memcpy(&bits, &given, sizeof bits);
    if (oct_node_attr(n, "seed") != NULL)
        return mixed(bits);
    return mixed(n->name[0] != 0 ? oct_hash(OCT_HASH_INIT, n->name, strlen(n->name)) : (uint64_t)n->out[0]);
}

static uint64_t seed_of(const oct_step *s, const oct_run *r)
{
    return node_seed(s->node) ^ r->iteration;
}

/* ------------------------------------------------------------------ shapes */

static oct_status set_type(const oct_infer *c, oct_dtype absent, oct_err *err)
{
    const int64_t t = oct_node_int(oct_in_node(c), "dtype", 0);
    if (t < 0 || t >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'dtype' is %lld", (long long)t);
    oct_out_dtype(c, 0, t != 0 ? (oct_dtype)t : absent);
    return OCT_OK;
}

static oct_status shape_infer(const oct_infer *c, oct_err *err)
{
    int n;
    oct_dim d[OCT_MAX_RANK];
    const int64_t *shape = oct_node_ints(oct_in_node(c), "shape", &n);
    OCT_TRY(set_type(c, OCT_F32, err));
    if (oct_node_attr(oct_in_node(c), "shape") == NULL || n > OCT_MAX_RANK)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'shape' is missing or has more than %d values", OCT_MAX_RANK);
    for (int i = 0; i < n; i++) {
        if (shape[i] < 0)
            return oct_fail(err, OCT_EMALFORMED, "attribute 'shape' holds %lld", (long long)shape[i]);
        d[i] = oct_dim_of(shape[i]);
    }
    return oct_out_shape(c, 0, n, d, err);
}

static oct_status like_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    OCT_TRY(set_type(c, oct_in_dtype(c, 0), err));
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static oct_status multinomial_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    const int64_t n = oct_node_int(oct_in_node(c), "sample_size", 1);
    OCT_TRY(set_type(c, OCT_S32, err));
    if (n < 0 || (x.rank >= 0 && x.rank != 2))
        return oct_fail(err, OCT_EMALFORMED, "%lld samples of an input of %d dimensions, expected 2", (long long)n,
                        x.rank);
    return x.rank < 0 ? OCT_OK : oct_out_shape(c, 0, 2, (oct_dim[]){ x.d[0], oct_dim_of(n) }, err);
}

/* ------------------------------------------------------------------ running */

static oct_status random_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_dom in = s->n_in > 0 ? oct_dom_of(s->in[0]->dtype) : OCT_DOM_F, out = oct_dom_of(s->out[0]->dtype);
    const bool drawn = s->op->type[0] == 'R', real = out == OCT_DOM_F || out == OCT_DOM_D;
    if (out == OCT_DOM_NONE || (drawn && !real) || (!drawn && in != OCT_DOM_F && in != OCT_DOM_D))
        return oct_fail(err, OCT_EUNSUPPORTED, "numbers of %s", oct_dtype_name(s->out[0]->dtype));
    return OCT_OK;
}

static oct_status random_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *y = s->out[0];
    const bool is_normal = strstr(s->op->type, "Normal") != NULL;
    const double a = (double)oct_node_float(s->node, is_normal ? "mean" : "low", 0.0f);
    const double b = (double)oct_node_float(s->node, is_normal ? "scale" : "high", 1.0f);
    const uint64_t seed = seed_of(s, r);
    for (int64_t i = 0; i < y->count; i++) {
        const double v = is_normal ? a + b * normal(seed, (uint64_t)i) : a + (b - a) * uniform(seed, (uint64_t)i);
        oct_elem_store(y->dtype, y->data, i, 1, 1, OCT_DOM_D, &v);
    }
    return OCT_OK;
}

static oct_status bernoulli_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const uint64_t seed = seed_of(s, r);
    for (int64_t i = 0; i < s->out[0]->count; i++) {
        const int64_t v = uniform(seed, (uint64_t)i) < oct_elem_double(s->in[0], i);
        oct_elem_store(s->out[0]->dtype, s->out[0]->data, i, 1, 1, OCT_DOM_I, &v);
    }
    return OCT_OK;
}

/* The class at a place of the cumulated probabilities, which are exp(x), not normalised. */
static int64_t class_at(const oct_operand *x, int64_t row, double most, double place)
{
    const int64_t n = x->dims[1];
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) {
        sum += oct_exp(oct_elem_double(x, row * n + k) - most);
        if (sum > place)
            return k;
    }
    return n - 1;
}

static oct_status multinomial_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const int64_t n = x->dims[1], samples = y->dims[1];
    const uint64_t seed = seed_of(s, r);
    if (y->count > 0 && n == 0)
        return oct_fail(err, OCT_EMALFORMED, "samples of no classes");
    for (int64_t row = 0; row < x->dims[0] && y->count > 0; row++) {
        double most = -(double)INFINITY, total = 0.0;
        for (int64_t k = 0; k < n; k++)
            most = oct_elem_double(x, row * n + k) > most ? oct_elem_double(x, row * n + k) : most;
        for (int64_t k = 0; k < n; k++)
            total += oct_exp(oct_elem_double(x, row * n + k) - most);
        for (int64_t i = row * samples; i < (row + 1) * samples; i++) {
            const int64_t v = class_at(x, row, most, uniform(seed, (uint64_t)i) * total);
            oct_elem_store(y->dtype, y->data, i, 1, 1, OCT_DOM_I, &v);
        }
    }
    return OCT_OK;
}

#define RANDOM(name, onnx, first, inputs, shape, compute)  \
    const oct_op oct_op_##name = {                         \
        OCT_SCHEMA(onnx, "", first, inputs, inputs, 1, 1), \
        .infer = shape,                                    \
        .prepare = random_prepare,                         \
        .run = compute,                                    \
        .draws = true,                                     \
    }

RANDOM(random_uniform, "RandomUniform", 1, 0, shape_infer, random_run);
RANDOM(random_normal, "RandomNormal", 1, 0, shape_infer, random_run);
RANDOM(random_uniform_like, "RandomUniformLike", 1, 1, like_infer, random_run);
RANDOM(random_normal_like, "RandomNormalLike", 1, 1, like_infer, random_run);
RANDOM(bernoulli, "Bernoulli", 15, 1, like_infer, bernoulli_run);
RANDOM(multinomial, "Multinomial", 7, 1, multinomial_infer, multinomial_run);
