/* Runs operator cases from text files (scripts/make_op_cases.py): each names an operator, its attributes, inputs and
 * the outputs that another implementation computed. Every case is run with its inputs as constants, with shapes that
 * must follow from shapes alone, in every mixture of layouts that the operator accepts, and raised to a newer opset. Where
 * inputs are float32 it is run with 16-bit floats, too: the outputs are those of float32 on the same numbers, rounded once. */
#include "kernels/half.h"
#include "ops/infer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_IO = 16, LINE = 1 << 20 };

typedef struct tensor {
    bool present;
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_MAX_RANK], count;
    uint8_t *data;
    size_t bytes;
    bool quantized;
    float scale;
    int32_t zp;
} tensor;

typedef struct op_case {
    char name[200], op[64], domain[64];
    int64_t opset;
    oct_graph *g;
    int node;
    tensor in[MAX_IO], out[MAX_IO];
    const oct_tensor *konst[MAX_IO];
    int n_in, n_out;
    double rtol, atol;
    bool refuses;     /* must fail */
    bool free_shape;  /* the output's shape depends on data */
    bool exact;       /* outputs must be equal, also where they are real */
    tensor *capture;  /* outputs go here instead of being compared */
} op_case;

static int n_run, n_failed, n_skipped;

static bool problem(const op_case *c, const char *what, const char *detail)
{
    printf("FAILED %s (%s, opset %lld): %s%s%s\n", c->name, c->op, (long long)c->opset, what, *detail ? ": " : "", detail);
    return false;
}

/* ------------------------------------------------------------------ reading */

static int hex(int ch)
{
    return ch >= 'a' ? ch - 'a' + 10 : ch - '0';
}

/* "<dtype> <rank> <dims...> <bytes in hex or -> [q <scale> <zp>]" */
static bool read_tensor(char *text, tensor *t)
{
    char *save = NULL, *tok = strtok_r(text, " \n", &save);
    memset(t, 0, sizeof *t);
    if (tok == NULL || strcmp(tok, "absent") == 0)
        return true;
    t->present = true;
    t->dtype = (oct_dtype)atoi(tok);
    t->rank = atoi(strtok_r(NULL, " \n", &save));
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = atoll(strtok_r(NULL, " \n", &save));
    if (!oct_count(t->dims, t->rank, &t->count) || !oct_dtype_bytes(t->dtype, t->count, &t->bytes))
        return false;
    t->data = oct_calloc(t->bytes + 1, 1);
    tok = strtok_r(NULL, " \n", &save);
    if (t->data == NULL || tok == NULL || (t->bytes > 0 && strlen(tok) != 2 * t->bytes))
        return false;
    for (size_t i = 0; i < t->bytes; i++)
        t->data[i] = (uint8_t)(hex(tok[2 * i]) << 4 | hex(tok[2 * i + 1]));
    if ((tok = strtok_r(NULL, " \n", &save)) != NULL && strcmp(tok, "q") == 0) {
        t->quantized = true;
        t->scale = strtof(strtok_r(NULL, " \n", &save), NULL);
        t->zp = atoi(strtok_r(NULL, " \n", &save));
    }
    return true;
}

/* A list of floats or strings: the graph has no call that sets these. */
static bool read_list(op_case *c, const char *name, bool real, char *save)
{
    oct_err err = OCT_ERR_INIT;
    const char **strings = oct_arena_calloc(c->g->arena, 64, sizeof *strings);
    float *floats = oct_arena_calloc(c->g->arena, 64, sizeof *floats);
    int n = 0;
    for (char *t; n < 64 && (t = strtok_r(NULL, " \n", &save)) != NULL; n++) {
        strings[n] = oct_arena_strdup(c->g->arena, t);
        floats[n] = strtof(t, NULL);
    }
    if (oct_node_set_int(c->g, c->node, name, 0, &err) != OCT_OK)
        return false;
    oct_attr *a = (oct_attr *)(uintptr_t)oct_node_attr(&c->g->node[c->node], name);
    a->type = real ? OCT_ATTR_FLOATS : OCT_ATTR_STRINGS;
    a->floats = floats;
    a->strings = strings;
    a->n = n;
    return true;
}

static bool read_attr(op_case *c, char *text)
{
    char *save = NULL;
    const char *name = strtok_r(text, " \n", &save), *type = strtok_r(NULL, " \n", &save);
    oct_err err = OCT_ERR_INIT;
    if (strcmp(type, "int") == 0)
        return oct_node_set_int(c->g, c->node, name, atoll(strtok_r(NULL, " \n", &save)), &err) == OCT_OK;
    if (strcmp(type, "float") == 0)
        return oct_node_set_float(c->g, c->node, name, strtof(strtok_r(NULL, " \n", &save), NULL), &err) == OCT_OK;
    if (strcmp(type, "string") == 0) {
        const char *v = strtok_r(NULL, " \n", &save);
        return oct_node_set_str(c->g, c->node, name, v ? v : "", &err) == OCT_OK;
    }
    if (strcmp(type, "ints") == 0) {
        int64_t v[64];
        int n = 0;
        for (char *t; n < 64 && (t = strtok_r(NULL, " \n", &save)) != NULL;)
            v[n++] = atoll(t);
        return oct_node_set_ints(c->g, c->node, name, v, n, &err) == OCT_OK;
    }
    if (strcmp(type, "floats") == 0 || strcmp(type, "strings") == 0)
        return read_list(c, name, type[0] == 'f', save);
    tensor t;
    oct_tensor *k;
    if (strcmp(type, "tensor") != 0 || !read_tensor(save, &t) ||
        oct_tensor_new(c->g->arena, t.dtype, t.rank, t.dims, &k, &err) != OCT_OK)
        return false;
    memcpy((void *)(uintptr_t)k->data, t.data, t.bytes);
    oct_free(t.data);
    return oct_node_set_tensor(c->g, c->node, name, k, &err) == OCT_OK;
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
    const tensor *want = &c->out[slot];
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
        const tensor *want = &c->out[i];
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
            v->konst = NULL;
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
        const tensor *t = &c->in[i];
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
            int64_t n = (int64_t)number(t->dtype, t->data, k);
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

static void relayout(const tensor *t, oct_tensor_layout layout, const uint8_t *from, uint8_t *to, bool back)
{
    size_t size = t->count > 0 ? t->bytes / (size_t)t->count : 0;
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
        if (c->out[i].present && (s->out[i]->rank != c->out[i].rank ||
                                  memcmp(s->out[i]->dims, c->out[i].dims, (size_t)c->out[i].rank * sizeof c->out[i].dims[0]) != 0))
            return problem(c, how, "measured another shape");
    return true;
}

static bool run_layout(op_case *c, const oct_op *op, uint32_t last_in, uint32_t last_out, const char *how)
{
    oct_arena *a = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    oct_operand *in[MAX_IO] = { NULL }, *out[MAX_IO] = { NULL };
    oct_quant quant[2 * MAX_IO];
    uint8_t *buffer[MAX_IO] = { NULL };
    oct_node lowered = c->g->node[c->node]; /* a step's node may have another type than its record (QLinearAdd) */
    lowered.op = "Lowered";
    oct_step s = { .op = op, .node = &lowered, .opset = c->opset, .in = in, .out = out, .n_in = c->n_in,
                   .n_out = c->n_out, .epilogue = { false, -INFINITY, INFINITY } };
    for (int k = 0; k < c->n_in + c->n_out; k++) {
        bool is_in = k < c->n_in;
        tensor *t = is_in ? &c->in[k] : &c->out[k - c->n_in];
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
    oct_prep prep = { a, 1 };
    oct_run run = { 0 };
    bool quantized = c->n_out > 0 && c->out[0].quantized, ok = true;
    oct_status status = OCT_OK;
    if (quantized && (op->integer == NULL || !op->integer(&s)))
        ok = problem(c, how, "integer() refuses");
    if (ok)
        status = oct_step_prepare(&s, &prep, &err);
    if (ok && status == OCT_OK && s.scratch > 0)
        run.scratch = oct_arena_aligned(a, s.scratch, 64);
    if (ok && status == OCT_OK && op->measure != NULL && (status = op->measure(&s, &run, &err)) == OCT_OK && !c->refuses)
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
            v->konst = c->konst[i];
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
        oct_tensor *out[MAX_IO] = { NULL };
        int id = g->order[i];
        if (oct_op_eval(g, id, (size_t)1 << 20, g->arena, out, &err) != OCT_OK)
            return problem(c, "raised", err.text);
        for (int k = 0; k < g->node[id].n_out; k++) {
            if (out[k] == NULL)
                continue;
            if (id != c->node) {
                g->value[g->node[id].out[k]].konst = out[k];
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

/* The types of quantization operators do not follow those of their first input; BitCast keeps the size, NonMaxSuppression
 * has no other. */
static bool takes_half(const op_case *c)
{
    return c->n_in > 0 && c->n_out > 0 && c->in[0].present && c->in[0].dtype == OCT_F32 && !c->in[0].quantized &&
           strstr(c->op, "Quantize") == NULL && strstr(c->op, "QLinear") == NULL && strcmp(c->op, "BitCast") != 0 &&
           strcmp(c->op, "NonMaxSuppression") != 0;
}

static tensor of_type(const tensor *t, oct_dtype dtype, oct_arena *a)
{
    tensor r = *t;
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
    tensor result[MAX_IO];
    oct_dtype types[MAX_IO] = { OCT_UNDEFINED };
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
        oct_narrow(NULL, half, (const float *)(const void *)result[i].data, (size_t)result[i].count, narrow.out[i].data);
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

/* ------------------------------------------------------------------ all of it */

static bool run_case(op_case *c)
{
    oct_err err = OCT_ERR_INIT;
    const oct_op *op = oct_op_find(c->domain, c->op, c->opset);
    if (op == NULL || op->run == NULL) {
        n_skipped++;
        return true;
    }
    n_run++;
    if (c->n_in < op->min_in || (op->max_in >= 0 && c->n_in > op->max_in) || (op->max_out >= 0 && c->n_out > op->max_out))
        return problem(c, "arity", "outside of the record's limits");
    oct_infer ctx = { c->g, c->node, c->opset };
    oct_status s = op->infer(&ctx, &err);
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
    if (!check_halves(c, op))
        return false;
    for (int i = 0; i < c->n_in; i++)
        c->konst[i] = c->in[i].present ? c->g->value[c->g->node[c->node].in[i]].konst : NULL;
    if (!check_dynamic(c, op) || !check_propagated(c, op))
        return false;
    if (spatial || c->out[0].quantized || c->domain[0] != '\0')
        return true;
    int64_t to = c->opset < 13 && n_run % 2 != 0 ? 13 : 23;
    return c->opset >= to || check_raised(c, to);
}

/* ------------------------------------------------------------------ files */

static void begin(op_case *c, char *text)
{
    oct_err err = OCT_ERR_INIT;
    char *save = NULL;
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", strtok_r(text, " \n", &save));
    snprintf(c->op, sizeof c->op, "%s", strtok_r(NULL, " \n", &save));
    c->opset = atoll(strtok_r(NULL, " \n", &save));
    char *domain = strtok_r(NULL, " \n", &save);
    snprintf(c->domain, sizeof c->domain, "%s", domain != NULL ? domain : "");
    c->rtol = 1e-5;
    c->atol = 1e-6;
    c->g = oct_graph_create();
    if (c->g == NULL || oct_graph_set_opset(c->g, c->domain, c->opset, &err) != OCT_OK ||
        oct_graph_add_node(c->g, c->op, c->domain, c->name, 0, 0, -1, &c->node, &err) != OCT_OK)
        abort();
}

static void add_io(op_case *c, char *text, bool is_in)
{
    oct_err err = OCT_ERR_INIT;
    int slot = is_in ? c->n_in++ : c->n_out++, value = -1;
    tensor *t = is_in ? &c->in[slot] : &c->out[slot];
    char name[32];
    snprintf(name, sizeof name, "%s%d", is_in ? "x" : "y", slot);
    if (slot >= MAX_IO || !read_tensor(text, t)) {
        printf("bad tensor in case %s\n", c->name);
        abort();
    }
    if (is_in && t->present &&
        oct_graph_new_const(c->g, name, t->dtype, t->rank, t->dims, t->data, &value, &err) != OCT_OK)
        abort();
    if (!is_in && t->present && oct_graph_add_value(c->g, name, OCT_UNDEFINED, &value, &err) != OCT_OK)
        abort();
    if (is_in ? oct_graph_set_input(c->g, c->node, slot, value, &err) : 0)
        abort();
    oct_node *n = &c->g->node[c->node];
    if (!is_in) {
        int *out = oct_arena_alloc(c->g->arena, sizeof *out * (size_t)(slot + 1));
        if (out == NULL)
            abort();
        if (slot > 0)
            memcpy(out, n->out, sizeof *out * (size_t)slot);
        out[slot] = value;
        n->out = out;
        n->n_out = slot + 1;
        if (value >= 0)
            c->g->value[value].producer = c->node;
    }
}

static void end(op_case *c)
{
    if (!run_case(c))
        n_failed++;
    for (int i = 0; i < MAX_IO; i++) {
        oct_free(c->in[i].data);
        oct_free(c->out[i].data);
    }
    oct_graph_destroy(c->g);
}

static bool run_file(const char *path)
{
    static char line[LINE];
    static op_case c;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        printf("%s: %s\n", path, strerror(errno));
        return false;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        char *space = strchr(line, ' '), *rest = space != NULL ? space + 1 : line;
        if (strncmp(line, "case ", 5) == 0)
            begin(&c, rest);
        else if (strncmp(line, "attr ", 5) == 0 && !read_attr(&c, rest))
            printf("bad attribute in case %s\n", c.name);
        else if (strncmp(line, "in ", 3) == 0)
            add_io(&c, rest, true);
        else if (strncmp(line, "out ", 4) == 0)
            add_io(&c, rest, false);
        else if (strncmp(line, "tol ", 4) == 0)
            sscanf(rest, "%lf %lf", &c.rtol, &c.atol);
        else if (strncmp(line, "refuses", 7) == 0)
            c.refuses = true;
        else if (strncmp(line, "free_shape", 10) == 0)
            c.free_shape = true;
        else if (strncmp(line, "end", 3) == 0)
            end(&c);
    }
    fclose(f);
    return true;
}

int main(int argc, char **argv)
{
    bool ok = argc > 1;
    for (int i = 1; i < argc; i++)
        ok = run_file(argv[i]) && ok;
    printf("%d cases passed, %d failed, %d without a record\n", n_run - n_failed, n_failed, n_skipped);
    return ok && n_failed == 0 && n_run > 0 ? 0 : 1;
}
