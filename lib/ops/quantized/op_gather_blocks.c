/* com.microsoft.GatherBlockQuantized: what is picked from quantized values of 2, 4 or 8 bits with a scale a block along
 * one axis, made real. Bytes of less than 8 bits hold several values of the last dimension, the lowest bits first. */
#include "ops/core/args.h"
#include "ops/core/infer.h"
#include "ops/core/small.h"

/* Inputs. */
enum { IN_DATA, IN_IDS, IN_SCALE, IN_ZERO };

static int bits_of(const oct_node *n, oct_dtype data)
{
    return data == OCT_U8 ? (int)oct_node_int(n, "bits", 4) : 4;
}

/* Values of the last dimension in an element. */
static int64_t per_element(const oct_node *n, oct_dtype data)
{
    const int bits = bits_of(n, data);
    return data == OCT_U8 && (bits == 2 || bits == 4) ? 8 / bits : 1;
}

static oct_status gather_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    const oct_shape x = oct_in_shape(c, IN_DATA), ids = oct_in_shape(c, IN_IDS);
    oct_dim d[2 * OCT_MAX_RANK];
    int axis, rank = 0;
    oct_out_dtype(c, 0, oct_in_dtype(c, IN_SCALE));
    if (x.rank < 0 || ids.rank < 0)
        return OCT_OK;
    OCT_TRY(oct_axis(oct_node_int(n, "gather_axis", 0), x.rank, &axis, err));
    for (int i = 0; i < axis; i++)
        d[rank++] = x.d[i];
    for (int i = 0; i < ids.rank; i++)
        d[rank++] = ids.d[i];
    for (int i = axis + 1; i < x.rank; i++)
        d[rank++] = i + 1 < x.rank ? x.d[i] : oct_dim_mul(x.d[i], oct_dim_of(per_element(n, oct_in_dtype(c, IN_DATA))));
    return oct_out_shape(c, 0, rank, d, err);
}

typedef struct geometry {
    int64_t outer, n, inner;    /* around and along the axis of the indices */
    int64_t length, behind;     /* of the blocks' axis, and of what stands behind it */
    int64_t block, blocks, row; /* values of a block; blocks; scales along the last dimension */
    int bits;
    bool packed; /* several values a byte of type u8 */
} geometry;

static oct_status measure(const oct_step *s, geometry *g, oct_err *err)
{
    const oct_operand *x = s->in[IN_DATA];
    int64_t dims[OCT_MAX_RANK];
    int axis, along;
    OCT_TRY(oct_axis(oct_node_int(s->node, "gather_axis", 0), x->rank, &axis, err));
    OCT_TRY(oct_axis(oct_node_int(s->node, "quantize_axis", 1), x->rank, &along, err));
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank - 1] *= per_element(s->node, x->dtype);
    *g = (geometry){ .bits = bits_of(s->node, x->dtype), .block = oct_node_int(s->node, "block_size", 128) };
    g->packed = x->dtype == OCT_U8;
    if (g->block < 16 || (g->block & (g->block - 1)) || (g->packed && g->bits != 2 && g->bits != 4 && g->bits != 8) ||
        (g->packed && axis != 0))
        return oct_fail(err, OCT_EMALFORMED, "blocks of %lld values of %d bits, picked along axis %d",
                        (long long)g->block, g->bits, axis);
    g->outer = oct_product(dims, axis);
    g->n = dims[axis];
    g->inner = oct_product(dims + axis + 1, x->rank - axis - 1);
    g->length = dims[along];
    g->behind = oct_product(dims + along + 1, x->rank - along - 1);
    g->blocks = (g->length + g->block - 1) / g->block;
    dims[along] = g->blocks;
    g->row = dims[x->rank - 1];
    const oct_operand *scale = s->in[IN_SCALE], *zero = s->n_in > IN_ZERO ? s->in[IN_ZERO] : NULL;
    const int64_t per = per_element(s->node, x->dtype), count = oct_product(dims, x->rank);
    const int64_t zeros = g->row ? count / g->row * ((g->row + per - 1) / per) : 0;
    return scale->count == count && (!zero || zero->count == zeros)
               ? OCT_OK
               : oct_fail(err, OCT_EMALFORMED, "%lld scales where blocks are %lld", (long long)scale->count,
                          (long long)count);
}

static oct_status gather_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[IN_DATA], *ids = s->in[IN_IDS], *scale = s->in[IN_SCALE],
                      *zero = s->n_in > IN_ZERO ? s->in[IN_ZERO] : NULL;
    geometry g;
    if ((x->dtype != OCT_U8 && x->dtype != OCT_U4 && x->dtype != OCT_S4) || scale->dtype != OCT_F32 || x->rank < 2 ||
        (zero && zero->dtype != x->dtype))
        return oct_fail(err, OCT_EUNSUPPORTED, "GatherBlockQuantized of %s with scales of %s cannot be run",
                        oct_dtype_name(x->dtype), oct_dtype_name(scale->dtype));
    if (ids->dtype != OCT_S64 && ids->dtype != OCT_S32)
        return oct_fail(err, OCT_EMALFORMED, "indices of type %s", oct_dtype_name(ids->dtype));
    return measure(s, &g, err);
}

/* Value i of a tensor, whose last dimension has `row` values and begins with a byte of its own. */
static float value_at(const geometry *g, const oct_operand *t, int64_t row, int64_t i)
{
    if (!g->packed)
        return oct_small_get(t->dtype, t->data, i);
    const int64_t per = 8 / g->bits, bytes = (row + per - 1) / per, at = i % row;
    const uint8_t byte = ((const uint8_t *)t->data)[i / row * bytes + at / per];
    return (float)(byte >> at % per * g->bits & ((1 << g->bits) - 1));
}

static oct_status gather_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[IN_DATA], *ids = s->in[IN_IDS], *zero = s->n_in > IN_ZERO ? s->in[IN_ZERO] : NULL;
    const float *scale = s->in[IN_SCALE]->data;
    float *y = s->out[0]->data;
    geometry g;
    OCT_TRY(measure(s, &g, err));
    const float middle = g.packed ? (float)(1 << (g.bits - 1)) : 0.0f;
    const int64_t last = x->dims[x->rank - 1] * per_element(s->node, x->dtype);
    for (int64_t o = 0; o < g.outer; o++)
        for (int64_t k = 0; k < ids->count; k++) {
            const int64_t id =
                ids->dtype == OCT_S64 ? ((const int64_t *)ids->data)[k] : ((const int32_t *)ids->data)[k];
            if (id < -g.n || id >= g.n)
                return oct_index_outside(id, g.n, err);
            const int64_t first = (o * g.n + (id < 0 ? id + g.n : id)) * g.inner;
            for (int64_t e = first; e < first + g.inner; e++) {
                const int64_t c = e / g.behind % g.length,
                              at = (e / g.behind / g.length * g.blocks + c / g.block) * g.behind + e % g.behind;
                *y++ = (value_at(&g, x, last, e) - (zero ? value_at(&g, zero, g.row, at) : middle)) * scale[at];
            }
        }
    return OCT_OK;
}

const oct_op oct_op_gather_block_quantized = {
    OCT_SCHEMA("GatherBlockQuantized", "com.microsoft", 1, 3, 4, 1, 1),
    .infer = gather_infer,
    .prepare = gather_prepare,
    .run = gather_run,
    .widens = true,
    .scheme = "weight-only",
};
