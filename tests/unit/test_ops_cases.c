/* Runs operator cases from text files (tests/generate/make_op_cases.py): each names an operator, its attributes,
 * inputs and the outputs that another implementation computed. Every case is run with its inputs as constants, with
 * shapes that must follow from shapes alone, in every mixture of layouts that the operator accepts, and raised to a
 * newer opset. Where inputs are float32 it is run with 16-bit floats, too: the outputs are those of float32 on the same
 * numbers, rounded once. And the outputs have the same bytes on every instruction set that this CPU has, with one
 * thread and with two. */
#include "kernels/cpu.h"
#include "kernels/half.h"
#include "op_case.h"
#include "passes/pass.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_run, n_failed;
static bool seen[1000]; /* records that have a case, by their places in oct_op_all */
static oct_pool *pool;  /* of the runs; NULL: one thread */

static bool problem(const op_case *c, const char *what, const char *detail)
{
    printf("FAILED %s (%s, opset %lld): %s%s%s\n", c->name, c->op, (long long)c->opset, what, *detail ? ": " : "",
           detail);
    return false;
}

/* ------------------------------------------------------------------ comparing */

static double number(oct_dtype t, const uint8_t *p, int64_t i)
{
    switch (t) {
    case OCT_F32: return ((const float *)(const void *)p)[i];
    case OCT_F64: return ((const double *)(const void *)p)[i];
    case OCT_F16: return oct_f16_to_f32(((const uint16_t *)(const void *)p)[i]);
    case OCT_BF16: return oct_bf16_to_f32(((const uint16_t *)(const void *)p)[i]);
    case OCT_U8:
    case OCT_BOOL: return p[i];
    case OCT_S8: return ((const int8_t *)p)[i];
    case OCT_U16: return ((const uint16_t *)(const void *)p)[i];
    case OCT_S16: return ((const int16_t *)(const void *)p)[i];
    case OCT_S32: return ((const int32_t *)(const void *)p)[i];
    case OCT_U32: return ((const uint32_t *)(const void *)p)[i];
    case OCT_S64: return (double)((const int64_t *)(const void *)p)[i];
    case OCT_U64: return (double)((const uint64_t *)(const void *)p)[i];
    default: return 0;
    }
}

static bool is_real(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F64 || t == OCT_F16 || t == OCT_BF16;
}

static bool equal(const op_case *c, int slot, const uint8_t *got, const char *how)
{
    const op_tensor *want = &c->out[slot];
    char text[200];
    if (!is_real(want->dtype) && !want->quantized) {
        if (memcmp(got, want->data, want->bytes) == 0)
            return true;
        size_t at = 0;
        while (got[at] == want->data[at])
            at++;
        snprintf(text, sizeof text, "output %d, byte %zu: %d, expected %d", slot, at, got[at], want->data[at]);
        return problem(c, how, text);
    }
    double most = want->dtype == OCT_F16 ? 1e-3 : want->dtype == OCT_BF16 ? 8e-3 : 0;
    for (int64_t i = 0; i < want->count; i++) {
        double a = number(want->dtype, got, i), b = number(want->dtype, want->data, i);
        if (a == b || (a != a && b != b))
            continue;
        double limit = c->exact ? 0 : want->quantized ? c->atol : c->atol + (c->rtol + most) * fabs(b);
        if (!(fabs(a - b) <= limit)) {
            snprintf(text, sizeof text, "output %d, element %lld: %.9g, expected %.9g", slot, (long long)i, a, b);
            return problem(c, how, text);
        }
    }
    return true;
}

static bool check_shape(const op_case *c, bool exact, const char *how)
{
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i].present)
            continue;
        const oct_value *v = &c->g->value[c->g->node[c->node].out[i]];
        const op_tensor *want = &c->out[i];
        char text[100];
        if (v->dtype != want->dtype && !(v->dtype == OCT_UNDEFINED && !exact))
            return problem(c, how, "wrong output type");
        if (exact && v->shape.rank != want->rank)
            return problem(c, how, oct_shape_text(&v->shape, text, sizeof text));
        if (v->shape.rank >= 0 && v->shape.rank != want->rank)
            return problem(c, how, oct_shape_text(&v->shape, text, sizeof text));
        for (int k = 0; k < v->shape.rank; k++)
            if (v->shape.d[k].n >= 0 ? v->shape.d[k].n != want->dims[k] : exact)
                return problem(c, how, oct_shape_text(&v->shape, text, sizeof text));
    }
    return true;
}

/* Known elements, where there are any, must be the values. */
static bool check_known(const op_case *c)
{
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i].present)
            continue;
        const oct_value *v = &c->g->value[c->g->node[c->node].out[i]];
        if (v->known == NULL)
            continue;
        if (v->n_known != c->out[i].count)
            return problem(c, "known elements", "wrong number");
        for (int k = 0; k < v->n_known; k++)
            if ((v->known[k].n != -1 || v->known[k].sym == oct_minus_one) &&
                (double)v->known[k].n != number(c->out[i].dtype, c->out[i].data, k))
                return problem(c, "known elements", "wrong value");
    }
    return true;
}

/* ------------------------------------------------------------------ running */

static void forget_outputs(op_case *c)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].present) {
            oct_value *v = &c->g->value[c->g->node[c->node].out[i]];
            v->shape.rank = -1;
            v->dtype = OCT_UNDEFINED;
            v->known = NULL;
        }
}

/* Inputs without values, some dimensions unknown: what is inferred must not contradict the truth. */
static bool check_dynamic(op_case *c, const oct_op *op)
{
    oct_err err = OCT_ERR_INIT;
    oct_infer ctx = { c->g, c->node, c->opset };
    for (int round = 0; round < 3; round++) {
        forget_outputs(c);
        for (int i = 0; i < c->n_in; i++) {
            if (!c->in[i].present)
                continue;
            oct_value *v = &c->g->value[c->g->node[c->node].in[i]];
            v->constant = NULL;
            oct_dim d[OCT_MAX_RANK];
            for (int k = 0; k < c->in[i].rank; k++) {
                char sym[24];
                snprintf(sym, sizeof sym, "d%lld", (long long)c->in[i].dims[k]);
                d[k] = (oct_dim){ c->in[i].dims[k], NULL };
                if (round == 1 && c->in[i].dims[k] != 1)
                    d[k] = (oct_dim){ -1, oct_arena_strdup(c->g->arena, sym) };
            }
            if (round == 2)
                v->shape.rank = -1;
            else if (oct_graph_set_shape(c->g, c->g->node[c->node].in[i], c->in[i].rank, d, &err) != OCT_OK)
                return false;
        }
        if (op->infer(&ctx, &err) != OCT_OK)
            return problem(c, "inference from shapes", err.text);
        if (!check_shape(c, false, "inference from shapes"))
            return false;
    }
    return true;
}

/* Small integer inputs given as propagated elements instead of constants: the same shape follows. */
static bool check_propagated(op_case *c, const oct_op *op)
{
    oct_err err = OCT_ERR_INIT;
    oct_infer ctx = { c->g, c->node, c->opset };
    bool any = false, representable = true;
    forget_outputs(c);
    for (int i = 0; i < c->n_in; i++) {
        const op_tensor *t = &c->in[i];
        if (!t->present)
            continue;
        int id = c->g->node[c->node].in[i];
        if (oct_graph_set_dims(c->g, id, t->rank, t->dims, &err) != OCT_OK)
            return false;
        if (t->rank > 1 || t->count > 60 || (t->dtype != OCT_S64 && t->dtype != OCT_S32)) {
            representable &= i == 0 || t->rank > 1 || t->count > 8;
            continue;
        }
        oct_dim d[64];
        for (int64_t k = 0; k < t->count; k++) {
            const int64_t n = t->dtype == OCT_S64 ? ((const int64_t *)(const void *)t->data)[k]
                                                  : ((const int32_t *)(const void *)t->data)[k];
            representable &= n >= -1;
            d[k] = (oct_dim){ n, n == -1 ? oct_minus_one : NULL };
        }
        c->g->value[id].known = oct_arena_memdup(c->g->arena, d, (size_t)(t->count + 1) * sizeof *d);
        c->g->value[id].n_known = (int)t->count;
        any = true;
    }
    if (!any)
        return true;
    if (op->infer(&ctx, &err) != OCT_OK)
        return problem(c, "inference from propagated values", err.text);
    return check_shape(c, representable && !c->free_shape, "inference from propagated values") && check_known(c);
}

static void relayout(const op_tensor *t, oct_tensor_layout layout, const uint8_t *from, uint8_t *to, bool back)
{
    const size_t size = t->count > 0 ? t->bytes / (size_t)t->count : 0;
    if (layout == OCT_LAYOUT_PLAIN) { /* the only one that packed elements have */
        memcpy(to, from, t->bytes);
        return;
    }
    oct_operand o = { .rank = t->rank, .layout = layout };
    memcpy(o.dims, t->dims, sizeof o.dims);
    int64_t s[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(&o, s);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t rest = i, at = 0;
        for (int k = t->rank - 1; k >= 0; k--) {
            at += rest % t->dims[k] * s[k];
            rest /= t->dims[k];
        }
        memcpy(to + (size_t)(back ? i : at) * size, from + (size_t)(back ? at : i) * size, size);
    }
}

/* Whether an operator whose output shapes depend on data found those expected. */
static bool measured(const op_case *c, const oct_step *s, const char *how)
{
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].present &&
            (s->out[i]->rank != c->out[i].rank ||
             memcmp(s->out[i]->dims, c->out[i].dims, (size_t)c->out[i].rank * sizeof c->out[i].dims[0]) != 0))
            return problem(c, how, "measured another shape");
    return true;
}

static bool run_layout(op_case *c, const oct_op *op, uint32_t last_in, uint32_t last_out, const char *how)
{
    oct_arena *a = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    oct_operand *in[OP_CASE_IO] = { NULL }, *out[OP_CASE_IO] = { NULL };
    oct_quant quant[2 * OP_CASE_IO];
    uint8_t *buffer[OP_CASE_IO] = { NULL };
    oct_node lowered = c->g->node[c->node]; /* a step's node may have another type than its record (QLinearAdd) */
    lowered.op = "Lowered";
    oct_step s = { .op = op,
                   .node = &lowered,
                   .opset = c->opset,
                   .in = in,
                   .out = out,
                   .n_in = c->n_in,
                   .n_out = c->n_out,
                   .epilogue = { false, -INFINITY, INFINITY } };
    for (int k = 0; k < c->n_in + c->n_out; k++) {
        bool is_in = k < c->n_in;
        op_tensor *t = is_in ? &c->in[k] : &c->out[k - c->n_in];
        if (!t->present)
            continue;
        oct_operand *o = oct_arena_calloc(a, 1, sizeof *o);
        *o = (oct_operand){ .dtype = t->dtype, .rank = t->rank, .count = t->count, .constant = is_in, .value = -1 };
        memcpy(o->dims, t->dims, sizeof o->dims);
        o->layout = t->rank >= 3 && ((is_in ? last_in >> k : last_out >> (k - c->n_in)) & 1) ? OCT_LAYOUT_CHANNELS_LAST
                                                                                             : OCT_LAYOUT_PLAIN;
        o->data = oct_arena_aligned(a, t->bytes + 64, 64);
        memset(o->data, 0xa5, t->bytes + 64);
        if (is_in)
            relayout(t, o->layout, t->data, o->data, false);
        if (t->quantized) {
            quant[k] = (oct_quant){ 1, 0, &t->scale, &t->zp };
            o->q = &quant[k];
        }
        *(is_in ? &in[k] : &out[k - c->n_in]) = o;
        if (!is_in)
            buffer[k - c->n_in] = o->data;
    }
    oct_prep prep = { a, oct_pool_threads(pool) };
    oct_run run = { .pool = pool };
    bool quantized = c->n_out > 0 && c->out[0].quantized, ok = true;
    oct_status status = OCT_OK;
    if (quantized && (op->integer == NULL || !op->integer(&s)))
        ok = problem(c, how, "integer() refuses");
    if (ok)
        status = oct_step_prepare(&s, &prep, &err);
    if (ok && status == OCT_OK && s.scratch > 0)
        run.scratch = oct_arena_aligned(a, s.scratch, 64);
    if (ok && status == OCT_OK && op->measure != NULL && (status = op->measure(&s, &run, &err)) == OCT_OK &&
        !c->refuses)
        ok = measured(c, &s, how);
    if (ok && status == OCT_OK)
        status = oct_step_run(&s, &run, &err);
    if (c->refuses)
        ok = status != OCT_OK || problem(c, how, "it should have failed");
    else if (ok && status != OCT_OK)
        ok = problem(c, how, err.text);
    for (int i = 0; ok && !c->refuses && i < c->n_out; i++) {
        if (!c->out[i].present)
            continue;
        uint8_t *plain = oct_arena_alloc(a, c->out[i].bytes + 1);
        relayout(&c->out[i], out[i]->layout, buffer[i], plain, true);
        if (c->capture != NULL)
            memcpy(c->capture[i].data, plain, c->out[i].bytes);
        else
            ok = equal(c, i, plain, how);
        for (int k = 0; ok && k < 64; k++)
            if (buffer[i][c->out[i].bytes + (size_t)k] != 0xa5)
                ok = problem(c, how, "wrote past the end of an output");
    }
    oct_arena_destroy(a);
    return ok;
}

/* Raises the node to a newer opset and evaluates what it became: the same outputs. */
static bool check_raised(op_case *c, int64_t to)
{
    oct_err err = OCT_ERR_INIT;
    oct_graph *g = c->g;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].present) {
            oct_value *v = &g->value[g->node[c->node].in[i]];
            v->constant = c->constant[i];
            v->known = NULL;
            if (oct_graph_set_dims(g, g->node[c->node].in[i], c->in[i].rank, c->in[i].dims, &err) != OCT_OK)
                return false;
        }
    forget_outputs(c);
    for (int64_t from = c->opset; from < to; from++) {
        const oct_op *op = oct_op_of(g, c->node);
        if (op == NULL)
            return problem(c, "raising", "no record");
        if (op->raise != NULL && op->raise(g, c->node, from, &err) != OCT_OK)
            return problem(c, "raising", err.text);
        if (oct_graph_set_opset(g, "", from + 1, &err) != OCT_OK)
            return false;
    }
    if (oct_graph_check(g, &err) != OCT_OK)
        return problem(c, "raised", err.text);
    for (size_t i = 0; i < g->n_order; i++) {
        oct_tensor *out[OP_CASE_IO] = { NULL };
        int id = g->order[i];
        if (oct_op_eval(g, id, (size_t)1 << 20, g->arena, out, &err) != OCT_OK)
            return problem(c, "raised", err.text);
        for (int k = 0; k < g->node[id].n_out; k++) {
            if (out[k] == NULL)
                continue;
            if (id != c->node) {
                g->value[g->node[id].out[k]].constant = out[k];
                continue;
            }
            if (out[k]->dtype != c->out[k].dtype || out[k]->bytes != c->out[k].bytes || out[k]->rank != c->out[k].rank)
                return problem(c, "raised", "another type or shape");
            if (!equal(c, k, out[k]->data, "raised"))
                return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ 16-bit floats */

/* Whether input i stays float32 when the others become 16-bit: Resize's scales. */
static bool stays_float(const op_case *c, int i)
{
    return i > 0 && (strcmp(c->op, "Resize") == 0 || strcmp(c->op, "Upsample") == 0);
}

/* The types of quantization operators do not follow those of their first input; BitCast keeps the size,
 * NonMaxSuppression has no other. */
static bool takes_half(const op_case *c)
{
    return c->n_in > 0 && c->n_out > 0 && c->in[0].present && c->in[0].dtype == OCT_F32 && !c->in[0].quantized &&
           strstr(c->op, "Quantize") == NULL && strstr(c->op, "QLinear") == NULL && strcmp(c->op, "BitCast") != 0 &&
           strcmp(c->op, "NonMaxSuppression") != 0;
}

static op_tensor of_type(const op_tensor *t, oct_dtype dtype, oct_arena *a)
{
    op_tensor r = *t;
    r.dtype = dtype;
    if (!oct_dtype_bytes(dtype, r.count, &r.bytes) || !(r.data = oct_arena_calloc(a, r.bytes + 1, 1)))
        abort();
    return r;
}

/* The types that follow for the outputs when inputs have those of h. */
static bool infer_types(op_case *c, const oct_op *op, const op_case *h, oct_dtype *types)
{
    oct_err err = OCT_ERR_INIT;
    oct_infer ctx = { c->g, c->node, c->opset };
    forget_outputs(c);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].present)
            c->g->value[c->g->node[c->node].in[i]].dtype = h->in[i].dtype;
    oct_status s = op->infer(&ctx, &err);
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].present)
            c->g->value[c->g->node[c->node].in[i]].dtype = c->in[i].dtype;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].present)
            types[i] = c->g->value[c->g->node[c->node].out[i]].dtype;
    return s == OCT_OK || problem(c, "types of 16 bits", err.text);
}

/* wide: the inputs rounded to `half`, in float32, for the expected outputs; narrow: the same numbers in 16 bits. */
static bool check_half(op_case *c, const oct_op *op, oct_dtype half, oct_arena *a)
{
    const char *how = half == OCT_F16 ? "float16" : "bfloat16";
    op_case wide = *c, narrow = *c;
    op_tensor result[OP_CASE_IO];
    oct_dtype types[OP_CASE_IO] = { OCT_UNDEFINED };
    for (int i = 0; i < c->n_in; i++) {
        if (!c->in[i].present || c->in[i].dtype != OCT_F32 || stays_float(c, i))
            continue;
        narrow.in[i] = of_type(&c->in[i], half, a);
        wide.in[i] = of_type(&c->in[i], OCT_F32, a);
        oct_narrow(NULL, half, (const float *)(const void *)c->in[i].data, (size_t)c->in[i].count, narrow.in[i].data);
        oct_widen(NULL, half, narrow.in[i].data, (size_t)c->in[i].count, (float *)(void *)wide.in[i].data);
    }
    for (int i = 0; i < c->n_out; i++)
        result[i] = c->out[i].present ? of_type(&c->out[i], c->out[i].dtype, a) : c->out[i];
    bool spatial = op->layout == OCT_RULE_SPATIAL;
    wide.capture = result;
    if (!run_layout(&wide, op, spatial, spatial ? ~0u : 0, how) || !infer_types(c, op, &narrow, types))
        return false;
    for (int i = 0; i < c->n_out; i++) {
        if (!c->out[i].present)
            continue;
        narrow.out[i] = result[i];
        if (c->out[i].dtype != OCT_F32 || types[i] == OCT_F32)
            continue;
        if (types[i] != half)
            return problem(c, how, "wrong output type");
        narrow.out[i] = of_type(&result[i], half, a);
        oct_narrow(NULL, half, (const float *)(const void *)result[i].data, (size_t)result[i].count,
                   narrow.out[i].data);
    }
    narrow.exact = true;
    return run_layout(&narrow, op, spatial, spatial ? ~0u : 0, how) &&
           (op->layout != OCT_RULE_ANY || run_layout(&narrow, op, 5, 1, how));
}

static bool check_halves(op_case *c, const oct_op *op)
{
    if (!takes_half(c))
        return true;
    oct_arena *a = oct_arena_create();
    bool ok = check_half(c, op, OCT_F16, a) && check_half(c, op, OCT_BF16, a);
    oct_arena_destroy(a);
    return ok;
}

/* ------------------------------------------------------------------ the same bytes */

/* One way more: into *to, which are compared with *first where that is another. */
static bool same_bytes(op_case *c, const oct_op *op, const op_tensor *first, op_tensor *to, const char *isa)
{
    char how[60];
    const bool spatial = op->layout == OCT_RULE_SPATIAL;
    op_case one = *c;
    snprintf(how, sizeof how, "%s with %d threads", isa, oct_pool_threads(pool));
    one.capture = to;
    if (!run_layout(&one, op, spatial, spatial ? ~0u : 0, how))
        return false;
    for (int i = 0; i < c->n_out && first != to; i++)
        if (c->out[i].present && memcmp(first[i].data, to[i].data, to[i].bytes) != 0)
            return problem(c, how, "other bytes than with one thread on scalar");
    return true;
}

static bool check_ways(op_case *c, const oct_op *op, oct_pool *two)
{
    const char *isa;
    op_tensor first[OP_CASE_IO], again[OP_CASE_IO];
    oct_arena *a = oct_arena_create();
    bool ok = true;
    for (int i = 0; i < c->n_out; i++) {
        first[i] = c->out[i].present ? of_type(&c->out[i], c->out[i].dtype, a) : c->out[i];
        again[i] = c->out[i].present ? of_type(&c->out[i], c->out[i].dtype, a) : c->out[i];
    }
    for (size_t i = 0; ok && (isa = oct_isa_level(i)); i++) {
        if (oct_isa_limit(isa, NULL) != OCT_OK)
            continue;
        ok = same_bytes(c, op, first, i ? again : first, isa);
        pool = two;
        ok = ok && same_bytes(c, op, first, again, isa);
        pool = NULL;
    }
    oct_arena_destroy(a);
    return oct_isa_limit("native", NULL) == OCT_OK && ok;
}

/* ------------------------------------------------------------------ all of it */

static void mark(const oct_op *op)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < n && i < OCT_COUNT(seen); i++)
        seen[i] |= all[i] == op;
}

/* Every record that computes has a case. */
static bool all_seen(void)
{
    size_t n;
    bool ok = true;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < n; i++)
        if (all[i]->run && !(i < OCT_COUNT(seen) && seen[i])) {
            printf("FAILED %s%s%s of opset %d has no case\n", all[i]->domain, all[i]->domain[0] ? "." : "",
                   all[i]->type, all[i]->since);
            ok = false;
        }
    return ok;
}

static bool run_case(op_case *c, oct_pool *two)
{
    oct_err err = OCT_ERR_INIT;
    const oct_op *op = oct_op_find(c->domain, c->op, c->opset);
    n_run++;
    if (op == NULL || op->run == NULL)
        return problem(c, "no record", "is it in ops.inc?");
    mark(op);
    oct_infer ctx = { c->g, c->node, c->opset };
    oct_status s = oct_check_arity(c->g, c->node, op, &err);
    if (s != OCT_OK && !c->refuses)
        return problem(c, "arity", err.text);
    if (s == OCT_OK)
        s = op->infer(&ctx, &err);
    if (c->refuses && s != OCT_OK)
        return true;
    if (s != OCT_OK)
        return problem(c, "inference", err.text);
    if (!c->refuses && (!check_shape(c, !c->free_shape, "inference") || !check_known(c)))
        return false;
    bool spatial = op->layout == OCT_RULE_SPATIAL; /* input 0 and the outputs channels-last, nothing else */
    if (!run_layout(c, op, spatial, spatial ? ~0u : 0, spatial ? "channels-last" : "plain"))
        return false;
    if (c->refuses)
        return true;
    if (op->layout == OCT_RULE_ANY &&
        !(run_layout(c, op, ~0u, ~0u, "all channels-last") && run_layout(c, op, ~0u, 0, "inputs channels-last") &&
          run_layout(c, op, 0, ~0u, "outputs channels-last") && run_layout(c, op, 5, 1, "mixed layouts")))
        return false;
    if (!check_halves(c, op) || !check_ways(c, op, two))
        return false;
    for (int i = 0; i < c->n_in; i++)
        c->constant[i] = c->in[i].present ? c->g->value[c->g->node[c->node].in[i]].constant : NULL;
    if (!check_dynamic(c, op) || !check_propagated(c, op))
        return false;
    if (spatial || c->out[0].quantized || c->domain[0] != '\0')
        return true;
    int64_t to = c->opset < 13 && n_run % 2 != 0 ? 13 : 23;
    return c->opset >= to || check_raised(c, to);
}

static void run_one(op_case *c, void *arg)
{
    if (!run_case(c, arg))
        n_failed++;
}

/* test_ops_cases FOLDER */
int main(int argc, char **argv)
{
    glob_t found = { 0 };
    char pattern[1000];
    snprintf(pattern, sizeof pattern, "%s/*.txt", argc > 1 ? argv[1] : ".");
    oct_pool *two = oct_pool_create(2);
    bool ok = two != NULL && glob(pattern, 0, NULL, &found) == 0;
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        ok = op_cases_read(found.gl_pathv[i], run_one, two);
    ok = all_seen() && ok;
    globfree(&found);
    oct_pool_destroy(two);
    printf("%d cases passed, %d failed\n", n_run - n_failed, n_failed);
    return ok && n_failed == 0 && n_run > 0 ? 0 : 1;
}
