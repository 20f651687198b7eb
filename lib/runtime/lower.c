/* Lowering: nodes become steps; quantized groups become integer steps; clamps join the step before them. */
#include "runtime/lower_int.h"

#include "kernels/half.h"

#include <math.h>
#include <string.h>

/* A tensor behind a DequantizeLinear, or of a QLinear operator: the integers' value and what they stand for. */
typedef struct quant_ref {
    int value;
    const oct_quant *q;
} quant_ref;

bool rt_is_op(const oct_node *n, const char *op)
{
    return strcmp(n->op, op) == 0 && (n->domain[0] == 0 || strcmp(n->domain, "com.microsoft") == 0);
}

/* ---- quantization parameters ---- */

static int32_t zero_point(const oct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    case OCT_U16: return ((const uint16_t *)t->data)[i];
    case OCT_S16: return ((const int16_t *)t->data)[i];
    case OCT_S32: return ((const int32_t *)t->data)[i];
    default: return 0;
    }
}

/* A scale's values as float32, in the arena where they are 16-bit floats; NULL: no memory. */
static const float *scale_values(rt_lowering *l, const oct_tensor *s)
{
    if (s->dtype == OCT_F32)
        return s->data;
    float *v = oct_arena_calloc(l->p->arena, (size_t)s->count, sizeof *v);
    if (v)
        oct_widen(NULL, s->dtype, s->data, (size_t)s->count, v);
    return v;
}

/* Builds parameters from a constant scale and an optional constant zero point. NULL when they are not constants of the
 * types that integer steps take; *oom when out of memory. */
static const oct_quant *make_quant(rt_lowering *l, int scale, int zp, int64_t axis, int rank, bool *oom)
{
    if (scale < 0)
        return NULL;
    const oct_tensor *s = l->g->value[scale].konst, *z = zp >= 0 ? l->g->value[zp].konst : NULL;
    if (!s || !s->data || !(s->dtype == OCT_F32 || oct_is_half(s->dtype)) || s->rank > 1 || s->count < 1 || s->count > INT32_MAX || (zp >= 0 && !z))
        return NULL;
    if (z && (z->count != s->count || !z->data || zero_point(z, 0) != zero_point(z, 0)))
        return NULL;
    oct_quant *q = oct_arena_calloc(l->p->arena, 1, sizeof *q);
    int32_t *zps = oct_arena_calloc(l->p->arena, (size_t)s->count, sizeof *zps);
    const float *scales = scale_values(l, s);
    if (!q || !zps || !scales) {
        *oom = true;
        return NULL;
    }
    for (int64_t i = 0; z && i < s->count; i++)
        zps[i] = zero_point(z, i);
    for (int64_t i = 0; i < s->count; i++)
        if (!(scales[i] > 0.0f) || isinf(scales[i]))
            return NULL;
    *q = (oct_quant){ (int)s->count, (int)(axis < 0 ? axis + rank : axis), scales, zps };
    return q;
}

/* The integers that value v is the dequantized form of. */
static bool behind_dq(rt_lowering *l, int v, quant_ref *r, bool *oom)
{
    int id = v >= 0 ? l->g->value[v].producer : -1;
    if (id < 0 || !rt_is_op(&l->g->node[id], "DequantizeLinear"))
        return false;
    const oct_node *n = &l->g->node[id];
    if (oct_node_int(n, "block_size", 0) != 0)
        return false;
    r->value = n->in[0];
    r->q = make_quant(l, n->in[1], n->n_in > 2 ? n->in[2] : -1, oct_node_int(n, "axis", 1),
                      l->g->value[n->in[0]].shape.rank, oom);
    return r->q != NULL;
}

/* ---- operands ---- */

static bool describe(const rt_lowering *l, int value, oct_operand *t)
{
    const oct_value *v = &l->g->value[value];
    *t = (oct_operand){ .dtype = v->dtype, .rank = v->shape.rank, .value = value };
    if (!oct_shape_known(&v->shape, t->dims) || !oct_count(t->dims, t->rank, &t->count))
        return false;
    if (v->konst) {
        t->constant = true;
        t->data = (void *)(uintptr_t)v->konst->data;
    }
    return true;
}

oct_status rt_lower_operand(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    oct_plan *p = l->p;
    if (p->value[value]) {
        *out = p->value[value];
        return OCT_OK;
    }
    const oct_value *v = &l->g->value[value];
    oct_operand t;
    size_t bytes;
    int buffer;
    if (v->dtype == OCT_STRING || v->dtype == OCT_UNDEFINED)
        return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has type %s, which cannot be run", v->name,
                        oct_dtype_name(v->dtype));
    char text[128];
    if (v->producer < 0 && !v->is_input && !(v->konst && v->konst->data))
        return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has no numbers here (a sparse or foreign constant)", v->name);
    if (!describe(l, value, &t) || !oct_dtype_bytes(t.dtype, t.count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "the shape %s of value '%s' is not known before running",
                        oct_shape_text(&v->shape, text, sizeof text), v->name);
    OCT_TRY(rt_new_buffer(p, bytes, &buffer, err));
    p->buffer[buffer].konst = t.data;
    if (!(*out = rt_new_operand(p, &t, buffer)))
        return oct_nomem(err);
    p->value[value] = *out;
    return OCT_OK;
}

/* An operand for the same bytes that carries quantization parameters. */
static oct_status quant_operand(rt_lowering *l, quant_ref r, rt_operand **out, oct_err *err)
{
    rt_operand *base;
    OCT_TRY(rt_lower_operand(l, r.value, &base, err));
    oct_operand t = base->t;
    t.q = l->grid[r.value] = r.q;
    if (!(*out = rt_new_operand(l->p, &t, base->buffer)))
        return oct_nomem(err);
    return OCT_OK;
}

/* ---- groups ---- */

/* The only user of a value that nothing else shows; -1 otherwise. */
static int sole_user(const rt_lowering *l, int value)
{
    const oct_value *v = &l->g->value[value];
    return oct_value_used_once(v) && v->uses[0].slot == 0 ? v->uses[0].node : -1;
}

/* Follows a clamp behind node's output when it may join the step: *value moves behind it. */
int rt_join_clamp(rt_lowering *l, int *value, oct_epilogue *e, bool tapped_blocks)
{
    int id = sole_user(l, *value);
    float lo, hi;
    if (id < 0 || !oct_op_clamp(l->g, id, &lo, &hi) || (tapped_blocks && rt_is_tapped(l->p, l->g->value[*value].name)))
        return -1;
    *e = (oct_epilogue){ true, lo, hi };
    *value = l->g->node[id].out[0];
    return id;
}

/* The tapped name that a value of the graph is shown under, or NULL. In operator form the integers X_quantized are all there
 * is of the real value X: they are shown as X. */
static const char *shown_name(const rt_lowering *l, int value)
{
    static const char suffix[] = "_quantized";
    const char *name = l->g->value[value].name;
    if (rt_is_tapped(l->p, name))
        return name;
    size_t n = strlen(name), m = sizeof suffix - 1;
    if (n <= m || strcmp(name + n - m, suffix) != 0)
        return NULL;
    for (size_t i = 0; i < l->p->opts.n_taps; i++)
        if (strlen(l->p->opts.taps[i]) == n - m && memcmp(l->p->opts.taps[i], name, n - m) == 0)
            return oct_graph_find(l->g, l->p->opts.taps[i]) < 0 ? l->p->opts.taps[i] : NULL;
    return NULL;
}

void rt_set_tap(rt_lowering *l, rt_step *st, int slot, int value)
{
    const char *name = value >= 0 ? shown_name(l, value) : NULL;
    if (name)
        st->tap[slot] = name;
}

/* Names of the float values that an integer step stands for: the tapped one that lies nearest to the output. */
static void tap_integer(rt_lowering *l, rt_step *st, int slot, int first, int last, int quantized)
{
    rt_set_tap(l, st, slot, first);
    rt_set_tap(l, st, slot, last);
    rt_set_tap(l, st, slot, quantized);
}

/* Inputs behind DequantizeLinear where the operator takes quantized operands. Which of a node's inputs count is a
 * matter of the operator: those that are not behind one (Reshape's shape, a float bias) are passed as they are, and the
 * operator's integer() decides. At least input 0 must be quantized. */
static oct_status integer_inputs(rt_lowering *l, const oct_node *n, rt_step *st, bool *fits, oct_err *err)
{
    *fits = false;
    for (int i = 0; i < n->n_in; i++) {
        quant_ref r;
        rt_operand *o;
        bool oom = false;
        if (n->in[i] < 0)
            continue;
        if (behind_dq(l, n->in[i], &r, &oom)) {
            OCT_TRY(quant_operand(l, r, &o, err));
            *fits |= i == 0;
        } else if (oom) {
            return oct_nomem(err);
        } else if (i == 0) {
            return OCT_OK;
        } else {
            OCT_TRY(rt_lower_operand(l, n->in[i], &o, err));
        }
        st->s.in[i] = &o->t;
    }
    return OCT_OK;
}

/* Tries to make node an integer step: DQ -> node [-> clamp] [-> Q]. */
static oct_status try_group(rt_lowering *l, int id, bool *made, oct_err *err)
{
    oct_plan *p = l->p;
    const oct_node *n = &l->g->node[id];
    const oct_op *op = oct_op_of(l->g, id);
    *made = false;
    if (!op->integer || n->n_out < 1 || n->out[0] < 0 || n->n_in < 1 || p->opts.no_integer)
        return OCT_OK;
    rt_step *st = rt_add_step(p, op, n, n->n_in, n->n_out);
    if (!st)
        return oct_nomem(err);
    size_t at = p->n_step - 1;
    bool fits;
    OCT_TRY(integer_inputs(l, n, st, &fits, err));
    int clamps[8], n_clamp = 0, quants[16], n_quant = 0;
    for (int k = 0; fits && k < n->n_out; k++) {
        if (n->out[k] < 0)
            continue;
        int end = n->out[k], clamp = -1;
        if (op->fuses_clamp && k == 0)
            clamp = rt_join_clamp(l, &end, &st->s.epilogue, false);
        int q = sole_user(l, end);
        rt_operand *o;
        if (q >= 0 && rt_is_op(&l->g->node[q], "QuantizeLinear") && n_quant < 16) {
            bool oom = false;
            const oct_node *qn = &l->g->node[q];
            quant_ref r = { qn->out[0], make_quant(l, qn->in[1], qn->n_in > 2 ? qn->in[2] : -1, 0, 1, &oom) };
            if (oom)
                return oct_nomem(err);
            if (!r.q || r.q->n != 1) {
                fits = false;
                break;
            }
            OCT_TRY(quant_operand(l, r, &o, err));
            tap_integer(l, st, k, n->out[k], end, qn->out[0]);
            quants[n_quant++] = q;
        } else {
            /* Real output: only for products, whose accumulator is worth more than a code. */
            fits = op->quant == OCT_QUANT_WEIGHTED;
            OCT_TRY(rt_lower_operand(l, end, &o, err));
            rt_set_tap(l, st, k, end);
        }
        if (clamp >= 0)
            clamps[n_clamp++] = clamp;
        st->s.out[k] = &o->t;
    }
    if (!fits || !op->integer(&st->s)) {
        p->n_step = at;
        return OCT_OK;
    }
    for (int i = 0; i < n_clamp; i++)
        l->done[clamps[i]] = true;
    for (int i = 0; i < n_quant; i++)
        l->done[quants[i]] = true;
    st->scheme = "int8";
    *made = true;
    return OCT_OK;
}

/* ---- QLinear operators: the same steps, parameters given as inputs ---- */

/* Where inputs, scales and zero points of a QLinear operator stand; -1 none. */
typedef struct qlinear_form {
    const char *type, *op;
    int x[2], xs[2], xz[2]; /* data, scale, zero point of the operator's inputs 0 and 1 */
    int bias;
    int ys, yz;
    int since;
} qlinear_form;

static const qlinear_form forms[] = {
    { "QLinearConv", "Conv", { 0, 3 }, { 1, 4 }, { 2, 5 }, 8, 6, 7, 11 },
    { "QLinearMatMul", "MatMul", { 0, 3 }, { 1, 4 }, { 2, 5 }, -1, 6, 7, 13 },
    { "QGemm", "Gemm", { 0, 3 }, { 1, 4 }, { 2, 5 }, 6, 7, 8, 13 },
    { "QLinearAdd", "Add", { 0, 3 }, { 1, 4 }, { 2, 5 }, -1, 6, 7, 14 },
    { "QLinearMul", "Mul", { 0, 3 }, { 1, 4 }, { 2, 5 }, -1, 6, 7, 14 },
    { "QLinearLeakyRelu", "LeakyRelu", { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4, 16 },
    { "QLinearSigmoid", "Sigmoid", { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4, 13 },
    { "QLinearSoftmax", "Softmax", { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4, 13 },
    { "QLinearAveragePool", "AveragePool", { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4, 13 },
    { "QLinearGlobalAveragePool", "GlobalAveragePool", { 0, -1 }, { 1, -1 }, { 2, -1 }, -1, 3, 4, 13 },
};

static int slot_in(const oct_node *n, int slot)
{
    return slot >= 0 && slot < n->n_in ? n->in[slot] : -1;
}

static oct_status qlinear_bias(rt_lowering *l, const qlinear_form *f, const oct_node *n, rt_step *st, oct_err *err)
{
    int b = slot_in(n, f->bias);
    if (b < 0)
        return OCT_OK;
    rt_operand *o;
    OCT_TRY(rt_lower_operand(l, b, &o, err));
    const oct_quant *x = st->s.in[0]->q, *w = st->s.in[1]->q;
    oct_quant *q = oct_arena_calloc(l->p->arena, 1, sizeof *q);
    float *scale = oct_arena_calloc(l->p->arena, (size_t)w->n, sizeof *scale);
    int32_t *zp = oct_arena_calloc(l->p->arena, (size_t)w->n, sizeof *zp);
    rt_operand *quant = rt_new_operand(l->p, &o->t, o->buffer);
    if (!q || !scale || !zp || !quant)
        return oct_nomem(err);
    for (int i = 0; i < w->n; i++)
        scale[i] = x->scale[0] * w->scale[i];
    *q = (oct_quant){ w->n, 0, scale, zp };
    quant->t.q = q;
    st->s.in[2] = &quant->t;
    return OCT_OK;
}

/* QLinearConcat: y_scale, y_zero_point, then data, scale and zero point of each input. */
static oct_status qlinear_concat(rt_lowering *l, const oct_node *n, bool *made, oct_err *err)
{
    const oct_op *op = oct_op_find("", "Concat", 13);
    int count = (n->n_in - 2) / 3;
    bool oom = false, ok = op && op->integer && n->n_in == 2 + 3 * count;
    rt_step *st = ok ? rt_add_step(l->p, op, n, count, 1) : NULL;
    if (ok && !st)
        return oct_nomem(err);
    size_t at = l->p->n_step - 1;
    for (int i = 0; ok && i < count + 1; i++) {
        bool out = i == count;
        int x = out ? n->out[0] : n->in[2 + 3 * i];
        quant_ref r = { x, make_quant(l, n->in[out ? 0 : 3 + 3 * i], n->in[out ? 1 : 4 + 3 * i], 0, 1, &oom) };
        rt_operand *o;
        if (oom)
            return oct_nomem(err);
        if (!(ok = r.q != NULL))
            break;
        OCT_TRY(quant_operand(l, r, &o, err));
        *(out ? st->s.out : st->s.in + i) = &o->t;
    }
    if (st && (!ok || !op->integer(&st->s))) {
        l->p->n_step = at;
        return OCT_OK;
    }
    if (!st)
        return OCT_OK;
    st->s.opset = 13;
    rt_set_tap(l, st, 0, n->out[0]);
    st->scheme = "int8";
    *made = true;
    return OCT_OK;
}

static oct_status try_qlinear(rt_lowering *l, int id, bool *made, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const qlinear_form *f = NULL;
    *made = false;
    if (rt_is_op(n, "QLinearConcat"))
        return qlinear_concat(l, n, made, err);
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (rt_is_op(n, forms[i].type))
            f = &forms[i];
    const oct_op *op = f ? oct_op_find("", f->op, f->since) : NULL;
    if (!op || !op->integer || n->n_out != 1)
        return OCT_OK;
    rt_step *st = rt_add_step(l->p, op, n, 3, 1);
    if (!st)
        return oct_nomem(err);
    st->s.opset = f->since;
    size_t at = l->p->n_step - 1;
    bool oom = false;
    for (int i = 0; i < 2; i++) {
        quant_ref r = { slot_in(n, f->x[i]), NULL };
        if (r.value < 0)
            continue;
        int rank = l->g->value[r.value].shape.rank;
        int64_t axis = i == 0 ? 0 : strcmp(f->op, "Conv") == 0 ? 0 : rank - 1;
        if (strcmp(f->op, "Gemm") == 0 && oct_node_int(n, "transB", 0))
            axis = 0;
        r.q = make_quant(l, slot_in(n, f->xs[i]), slot_in(n, f->xz[i]), axis, rank, &oom);
        rt_operand *o;
        if (!r.q)
            break;
        OCT_TRY(quant_operand(l, r, &o, err));
        st->s.in[i] = &o->t;
    }
    quant_ref y = { n->out[0], make_quant(l, slot_in(n, f->ys), slot_in(n, f->yz), 0, 1, &oom) };
    rt_operand *o;
    if (oom)
        return oct_nomem(err);
    if (y.q) {
        OCT_TRY(quant_operand(l, y, &o, err));
    } else {
        if (op->quant != OCT_QUANT_WEIGHTED || slot_in(n, f->ys) >= 0) {
            l->p->n_step = at;
            return OCT_OK;
        }
        OCT_TRY(rt_lower_operand(l, n->out[0], &o, err));
    }
    st->s.out[0] = &o->t;
    bool ok = st->s.in[0] && (f->x[1] < 0 || st->s.in[1]);
    if (ok && f->bias >= 0)
        OCT_TRY(qlinear_bias(l, f, n, st, err));
    while (st->s.n_in > 1 && !st->s.in[st->s.n_in - 1])
        st->s.n_in--;
    if (!ok || !op->integer(&st->s)) {
        l->p->n_step = at;
        return OCT_OK;
    }
    rt_set_tap(l, st, 0, n->out[0]);
    st->scheme = "int8";
    *made = true;
    return OCT_OK;
}

/* ---- data movement on codes ---- */

/* Whether the operator takes codes from input i to its outputs as they are. Pad and its like bring numbers of their own. */
static bool carries(const oct_op *op, int i)
{
    if (op->quant == OCT_QUANT_SAME)
        return i == 0 && strcmp(op->type, "Pad") != 0;
    return op->quant == OCT_QUANT_JOIN;
}

static bool same_grid(const oct_quant *a, const oct_quant *b)
{
    return a && b && a->n == 1 && b->n == 1 && a->scale[0] == b->scale[0] && a->zp[0] == b->zp[0];
}

/* A move of integers whose meaning is known: the step that QDQ around it would have given, so that the outputs' meaning is known
 * in turn. */
static oct_status try_moved(rt_lowering *l, int id, bool *made, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const oct_op *op = oct_op_of(l->g, id);
    const oct_quant *q = n->n_in > 0 && n->in[0] >= 0 ? l->grid[n->in[0]] : NULL;
    *made = false;
    if (!q || !op->integer || !carries(op, 0) || l->p->opts.no_integer)
        return OCT_OK;
    oct_dtype t = l->g->value[n->in[0]].dtype;
    for (int i = 0; i < n->n_in; i++)
        if (carries(op, i) && (n->in[i] < 0 || l->g->value[n->in[i]].dtype != t || !same_grid(q, l->grid[n->in[i]])))
            return OCT_OK;
    rt_step *st = rt_add_step(l->p, op, n, n->n_in, n->n_out);
    if (!st)
        return oct_nomem(err);
    size_t at = l->p->n_step - 1;
    rt_operand *o;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) {
            OCT_TRY(carries(op, i) ? quant_operand(l, (quant_ref){ n->in[i], q }, &o, err) : rt_lower_operand(l, n->in[i], &o, err));
            st->s.in[i] = &o->t;
        }
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0) {
            OCT_TRY(rt_lower_operand(l, n->out[k], &o, err));
            if (o->t.dtype == t)
                OCT_TRY(quant_operand(l, (quant_ref){ n->out[k], q }, &o, err));
            rt_set_tap(l, st, k, n->out[k]);
            st->s.out[k] = &o->t;
        }
    *made = op->integer(&st->s);
    st->scheme = "int8";
    if (!*made)
        l->p->n_step = at;
    return OCT_OK;
}

/* ---- plain steps ---- */

/* Rounding to 16 bits and clamping between 16-bit numbers may change places. */
static bool clampable(const oct_op *op, oct_dtype t)
{
    return t == OCT_F32 || (op->widens && oct_is_half(t));
}

static oct_status plain_step(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const oct_op *op = oct_op_of(l->g, id);
    if (!op->run && !op->alias)
        return oct_fail(err, OCT_EUNSUPPORTED, "operator %s (domain '%s') cannot be run yet", n->op, n->domain);
    rt_step *st = rt_add_step(l->p, op, n, n->n_in, n->n_out);
    if (!st)
        return oct_nomem(err);
    rt_operand *o;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0) {
            OCT_TRY(rt_lower_operand(l, n->in[i], &o, err));
            st->s.in[i] = &o->t;
        }
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < 0)
            continue;
        int end = n->out[k];
        if (k == 0 && op->fuses_clamp && clampable(op, l->g->value[end].dtype)) {
            int clamp = rt_join_clamp(l, &end, &st->s.epilogue, true);
            if (clamp >= 0)
                l->done[clamp] = true;
        }
        OCT_TRY(rt_lower_operand(l, end, &o, err));
        rt_set_tap(l, st, k, end);
        st->s.out[k] = &o->t;
    }
    return OCT_OK;
}

/* What a QuantizeLinear's output stands for. */
static oct_status note_grid(rt_lowering *l, const oct_node *n, oct_err *err)
{
    bool oom = false;
    if (n->n_in > 1 && n->n_out > 0 && n->out[0] >= 0 && !oct_node_int(n, "block_size", 0))
        l->grid[n->out[0]] = make_quant(l, n->in[1], n->n_in > 2 ? n->in[2] : -1, 0, 1, &oom);
    return oom ? oct_nomem(err) : OCT_OK;
}

oct_status rt_check_known(const oct_graph *g, int node, oct_err *err)
{
    const oct_node *n = &g->node[node];
    if (oct_op_of(g, node))
        return OCT_OK;
    return oct_fail(err, OCT_EUNSUPPORTED, "operator %s%s%s of opset %lld is unknown", n->domain, n->domain[0] ? "." : "", n->op,
                    (long long)oct_node_opset(g, n));
}

static oct_status lower_node(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    bool made;
    OCT_TRY(rt_lower_dynamic(l, id, &made, err));
    if (made)
        return OCT_OK;
    OCT_TRY(try_qlinear(l, id, &made, err));
    if (!made) {
        OCT_TRY(rt_check_known(l->g, id, err));
        OCT_TRY(try_group(l, id, &made, err));
    }
    if (!made)
        OCT_TRY(try_moved(l, id, &made, err));
    if (!made)
        OCT_TRY(plain_step(l, id, err));
    if (!made && rt_is_op(n, "QuantizeLinear"))
        OCT_TRY(note_grid(l, n, err));
    rt_step *last = &l->p->step[l->p->n_step - 1];
    last->macs = (uint64_t)oct_step_macs(&last->s);
    return OCT_OK;
}

/* Drops steps whose outputs nobody reads or sees: DequantizeLinear in front of integer steps. Readers come later in the
 * order, so one pass from the end finds all. */
static oct_status drop_unused(oct_plan *p, oct_err *err)
{
    bool *read = oct_calloc(p->n_buffer + 1, sizeof *read);
    if (!read)
        return oct_nomem(err);
    for (size_t o = 0; o < p->n_output; o++)
        read[p->output[o]->buffer] = true;
    size_t kept = p->n_step;
    for (size_t i = p->n_step; i-- > 0;) {
        rt_step *st = &p->step[i];
        bool needed = false;
        for (int k = 0; k < st->s.n_out; k++)
            needed |= st->s.out[k] && (st->tap[k] || read[((rt_operand *)st->s.out[k])->buffer]);
        if (!needed)
            continue;
        for (int m = 0; m < st->s.n_in; m++)
            if (st->s.in[m])
                read[((rt_operand *)st->s.in[m])->buffer] = true;
        p->step[--kept] = *st;
    }
    if (p->step)
        memmove(p->step, p->step + kept, (p->n_step - kept) * sizeof *p->step);
    p->n_step -= kept;
    oct_free(read);
    return OCT_OK;
}

static bool is_constant_dq(const rt_lowering *l, int id)
{
    const oct_node *n = &l->g->node[id];
    if (!rt_is_op(n, "DequantizeLinear") || !oct_op_of(l->g, id) || n->n_out != 1 || n->out[0] < 0)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && !l->g->value[n->in[i]].konst)
            return false;
    return true;
}

/* DequantizeLinear of constants that a float step uses or an output shows: computed once, here. */
static oct_status fold_dequantize(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    int v = n->out[0];
    oct_tensor *t;
    OCT_TRY(oct_op_eval(l->g, id, SIZE_MAX, l->p->arena, &t, err));
    rt_operand *o;
    OCT_TRY(rt_lower_operand(l, v, &o, err));
    o->t.constant = true;
    o->t.data = (void *)(uintptr_t)t->data;
    l->p->buffer[o->buffer].konst = t->data;
    return OCT_OK;
}

static oct_status lower_all(rt_lowering *l, oct_err *err)
{
    oct_plan *p = l->p;
    char text[300];
    for (size_t i = 0; i < p->g->n_input; i++) {
        rt_operand *o;
        OCT_TRY(rt_lower_operand(l, p->g->input[i], &o, err));
        p->buffer[o->buffer].input = (int)i;
    }
    for (size_t i = 0; i < p->g->n_order; i++) {
        int id = p->g->order[i];
        if (l->done[id] || is_constant_dq(l, id))
            continue;
        oct_status s = lower_node(l, id, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", oct_node_text(p->g, id, text, sizeof text));
            return s;
        }
    }
    for (size_t i = 0; i < p->n_output; i++)
        OCT_TRY(rt_lower_operand(l, p->g->output[i], &p->output[i], err));
    for (size_t i = 0; i < p->g->n_order; i++) {
        int id = p->g->order[i];
        if (!is_constant_dq(l, id) || !p->value[p->g->node[id].out[0]])
            continue;
        oct_status s = fold_dequantize(l, id, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", oct_node_text(p->g, id, text, sizeof text));
            return s;
        }
    }
    return drop_unused(p, err);
}

oct_status rt_lower(oct_plan *p, oct_err *err)
{
    rt_lowering l = { p, p->g, oct_calloc(p->g->n_node + 1, sizeof(bool)), oct_calloc(p->g->n_value + 1, sizeof(oct_quant *)) };
    p->value = oct_arena_calloc(p->arena, p->g->n_value + 1, sizeof *p->value);
    p->n_output = p->g->n_output;
    p->output = oct_arena_calloc(p->arena, p->n_output + 1, sizeof *p->output);
    oct_status s = l.done && l.grid && p->value && p->output ? lower_all(&l, err) : oct_nomem(err);
    oct_free(l.done);
    oct_free(l.grid);
    return s;
}
