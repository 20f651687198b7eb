/* Weights that DequantizeLinear spreads from blocks of 2, 4 or 8 bits: the product reads them as they are. MatMul, and Gemm without
 * factors, become com.microsoft.MatMulNBits, whose result is the same, bit for bit; the float weights are never made. */
#include "runtime/lower_int.h"

#include "kernels/nbits/nbits.h"
#include "ops/core/small.h"

#include <string.h>

/* A product whose weights can stay in blocks. */
typedef struct blocked {
    int node, dequantize; /* nodes */
    const oct_tensor *codes, *scale, *zero; /* zero: NULL for none */
    int axis;             /* of codes along k */
    oct_nbits_form form;
    int bias;             /* value or -1 */
} blocked;

static const oct_tensor *constant(const oct_graph *g, const oct_node *n, int slot)
{
    return slot < n->n_in && n->in[slot] >= 0 ? g->value[n->in[slot]].konst : NULL;
}

static bool is_signed(oct_dtype t)
{
    return t == OCT_S8 || t == OCT_S4 || t == OCT_S2;
}

/* A code from 0 up. */
static unsigned code_at(const oct_tensor *t, int64_t i)
{
    const int middle = is_signed(t->dtype) ? 1 << (oct_dtype_bits(t->dtype) - 1) : 0;
    if (oct_is_small_int(t->dtype))
        return (unsigned)((int)oct_small_get(t->dtype, t->data, i) + middle);
    return (unsigned)((is_signed(t->dtype) ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i]) + middle);
}

static bool codes_fit(const oct_tensor *t)
{
    return t && t->rank == 2 && t->data && (oct_is_small_int(t->dtype) || t->dtype == OCT_U8 || t->dtype == OCT_S8);
}

/* Scales, and zero points if any, one a block along the axis. */
static bool grid_fits(const blocked *b)
{
    const oct_tensor *s = b->scale;
    for (int i = 0; i < 2; i++)
        if (s->dims[i] != (i == b->axis ? (int64_t)oct_nbits_blocks(&b->form) : b->codes->dims[i]))
            return false;
    return !b->zero || (b->zero->dtype == b->codes->dtype && b->zero->count == s->count && b->zero->data);
}

static bool weights_match(const oct_plan *p, int value, int axis, blocked *b)
{
    const oct_graph *g = p->g;
    const oct_value *v = &g->value[value];
    const oct_node *n = v->producer >= 0 ? &g->node[v->producer] : NULL;
    if (!n || !rt_is_op(n, "DequantizeLinear") || v->dtype != OCT_F32 || v->is_output || rt_is_tapped(p, v->name))
        return false;
    const int64_t block = oct_node_int(n, "block_size", 0), given = oct_node_int(n, "axis", 1);
    b->dequantize = v->producer;
    b->codes = constant(g, n, 0);
    b->scale = constant(g, n, 1);
    b->zero = constant(g, n, 2);
    b->axis = axis;
    if (!codes_fit(b->codes) || !b->scale || b->scale->dtype != OCT_F32 || b->scale->rank != 2 || (n->n_in > 2 && n->in[2] >= 0 && !b->zero))
        return false;
    b->form = (oct_nbits_form){ .n = (size_t)b->codes->dims[1 - axis], .k = (size_t)b->codes->dims[axis],
                                .bits = oct_dtype_bits(b->codes->dtype), .block = (size_t)block,
                                .zero = b->zero || !is_signed(b->codes->dtype) ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE };
    oct_nbits probe;
    return (given == axis || given == axis - 2) && block > 0 && b->form.n > 0 && b->form.k >= b->form.block &&
           oct_nbits_prepare(&probe, &b->form, 1, NULL) == OCT_OK && grid_fits(b);
}

static bool bias_matches(const oct_plan *p, int bias, int64_t columns)
{
    const oct_tensor *t = bias >= 0 ? p->g->value[bias].konst : NULL;
    return bias < 0 || (t && t->dtype == OCT_F32 && t->rank == 1 && t->count == columns);
}

static bool match(const oct_plan *p, int id, blocked *b)
{
    const oct_node *n = &p->g->node[id];
    const oct_op *op = oct_op_of(p->g, id);
    oct_weight_layout l;
    if (!op || !op->weights.blocks || oct_no_integer(op, n) || n->n_in < 2 || n->in[0] < 0 || n->in[1] < 0 ||
        p->g->value[n->in[0]].dtype != OCT_F32)
        return false;
    const int slot = op->weights.bias;
    *b = (blocked){ .node = id, .bias = slot && slot < n->n_in ? n->in[slot] : -1 };
    return oct_weight_layout_of(op, n, 1, 2, (const int64_t[]){ 0, 0 }, &l) && weights_match(p, n->in[1], l.in_axis, b) &&
           bias_matches(p, b->bias, (int64_t)b->form.n);
}

/* ------------------------------------------------------------------ rewriting */

/* Element (column, i) of a matrix whose k runs along b->axis. */
static int64_t at(const blocked *b, const oct_tensor *t, size_t column, size_t i)
{
    const int64_t c = (int64_t)column, k = (int64_t)i;
    return b->axis ? c * t->dims[1] + k : k * t->dims[1] + c;
}

static void put_code(uint8_t *codes, int bits, size_t i, unsigned code)
{
    const size_t per = 8 / (size_t)bits;
    codes[i / per] |= (uint8_t)(code << i % per * (size_t)bits);
}

static void turn(const blocked *b, uint8_t *codes, float *scale, uint8_t *zero)
{
    const oct_nbits_form *f = &b->form;
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t j = 0; j < f->n; j++) {
        for (size_t i = 0; i < f->k; i++)
            put_code(codes + j * oct_nbits_column_bytes(f), f->bits, i, code_at(b->codes, at(b, b->codes, j, i)));
        for (size_t i = 0; i < blocks; i++) {
            scale[j * blocks + i] = ((const float *)b->scale->data)[at(b, b->scale, j, i)];
            if (b->zero)
                put_code(zero + j * oct_nbits_zero_bytes(f), f->bits, i, code_at(b->zero, at(b, b->zero, j, i)));
        }
    }
}

static oct_status new_constants(oct_graph *g, const blocked *b, int in[3], oct_err *err)
{
    const oct_nbits_form *f = &b->form;
    const int64_t n = (int64_t)f->n, blocks = (int64_t)oct_nbits_blocks(f);
    const char *base = g->value[g->node[b->node].in[1]].name;
    const int64_t dims[3] = { n, blocks, (int64_t)oct_nbits_column_bytes(f) / blocks };
    const int64_t zero_dims[2] = { n, (int64_t)oct_nbits_zero_bytes(f) };
    uint8_t *codes = oct_calloc(f->n, oct_nbits_column_bytes(f)), *zero = oct_calloc(f->n, oct_nbits_zero_bytes(f));
    float *scale = oct_calloc(f->n * oct_nbits_blocks(f), sizeof *scale);
    oct_status s = codes && zero && scale ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        turn(b, codes, scale, zero);
        s = oct_graph_new_const(g, base, OCT_U8, 3, dims, codes, &in[0], err);
    }
    if (s == OCT_OK)
        s = oct_graph_new_const(g, base, OCT_F32, 2, dims, scale, &in[1], err);
    in[2] = -1;
    if (s == OCT_OK && f->zero == OCT_NBITS_WHOLE)
        s = oct_graph_new_const(g, base, OCT_U8, 2, zero_dims, zero, &in[2], err);
    oct_free(codes);
    oct_free(zero);
    oct_free(scale);
    return s;
}

static oct_status replace(oct_graph *g, const blocked *b, oct_err *err)
{
    const oct_nbits_form *f = &b->form;
    const oct_node old = g->node[b->node];
    const int a = old.in[0], y = old.out[0];
    int in[3], id;
    OCT_TRY(new_constants(g, b, in, err));
    OCT_TRY(oct_graph_add_node(g, "MatMulNBits", "com.microsoft", old.name, 0, 1, b->node, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, a, err));
    for (int i = 0; i < 3; i++)
        OCT_TRY(oct_graph_set_input(g, id, 1 + i, in[i], err));
    if (b->bias >= 0) {
        OCT_TRY(oct_graph_set_input(g, id, 4, -1, err));
        OCT_TRY(oct_graph_set_input(g, id, 5, b->bias, err));
    }
    OCT_TRY(oct_node_set_int(g, id, "K", (int64_t)f->k, err));
    OCT_TRY(oct_node_set_int(g, id, "N", (int64_t)f->n, err));
    OCT_TRY(oct_node_set_int(g, id, "bits", f->bits, err));
    OCT_TRY(oct_node_set_int(g, id, "block_size", (int64_t)f->block, err));
    oct_graph_remove_node(g, b->node);
    return oct_graph_set_output(g, id, 0, y, err);
}

oct_status rt_keep_blocks(oct_plan *p, oct_err *err)
{
    bool any = false;
    for (size_t i = 0; i < p->g->n_order; i++) {
        blocked b;
        if (!match(p, p->g->order[i], &b))
            continue;
        if (!any && oct_graph_opset(p->g, "com.microsoft") == 0)
            OCT_TRY(oct_graph_set_opset(p->g, "com.microsoft", 1, err));
        OCT_TRY(replace(p->g, &b, err));
        any = true;
    }
    return OCT_OK; /* what is left without a reader is not run */
}
