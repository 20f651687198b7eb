/* Runs a .tflite model operator by operator. */
#include "twins/twin_int.h"

#include <stdarg.h>
#include <string.h>

struct oct_twin_run {
    const oct_twin *twin;
    const oct_tfl_model *m;
    oct_arena *arena;
    oct_twin_tensor *tensor; /* [m->n_tensor] */
    oct_twin_call *call;     /* [m->n_op] */
    const oct_twin_rule **rule;
};

/* ---- tensors ---- */

static oct_status place(oct_twin_run *r, size_t i, oct_err *err)
{
    const oct_tfl_tensor *t = &r->m->tensor[i];
    oct_twin_tensor *to = &r->tensor[i];
    int64_t dims[OCT_MAX_RANK];
    size_t bytes;
    const size_t element = oct_tfl_type_bytes(t->type);
    for (int k = 0; k < t->rank; k++)
        dims[k] = t->dims[k];
    to->t = t;
    if (!element || !oct_count(dims, t->rank, &to->count) || !oct_mul_size((size_t)to->count, element, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor '%s' has a type or a size that twins do not have", t->name);
    if (t->data && t->bytes < bytes)
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s' has %zu bytes of %zu", t->name, t->bytes, bytes);
    if (t->quant && t->quant->n > 0) {
        to->scale = t->quant->scale[0];
        to->zero = t->quant->zp ? t->quant->zp[0] : 0;
    }
    if (t->data) {
        to->data = (void *)(uintptr_t)t->data; /* operators only read constants */
        return OCT_OK;
    }
    if (!(to->data = oct_arena_alloc(r->arena, bytes + 1)))
        return oct_nomem(err);
    memset(to->data, 0, bytes);
    return OCT_OK;
}

/* ---- operators ---- */

/* The operand that says what an operator computes on. */
static const oct_twin_tensor *subject(const oct_twin_call *c)
{
    const int i = c->op->code == OCT_TFL_TRANSPOSE_CONV ? 2 : c->op->code == OCT_TFL_SPLIT ? 1 : 0;
    return i < c->n_in ? c->in[i] : NULL;
}

static bool fits(const oct_twin_rule *rule, const oct_twin_call *c)
{
    const oct_twin_tensor *x = subject(c), *y = c->n_out ? c->out[0] : NULL;
    if (!x || !y || rule->code != c->op->code)
        return false;
    return rule->types == OCT_TWIN_ANY ||
           (rule->types == OCT_TWIN_WHOLE   ? oct_twin_is_whole(x) && oct_twin_is_whole(y)
            : rule->types == OCT_TWIN_INT8  ? oct_twin_is_int8(x) && oct_twin_is_int8(y)
            : rule->types == OCT_TWIN_INT16 ? oct_twin_is_whole(x) && oct_twin_is_whole(y) &&
                                                  oct_twin_is(x, OCT_TFL_INT16) && oct_twin_is(y, OCT_TFL_INT16)
                                            : x->t->type == OCT_TFL_FLOAT32 && y->t->type == OCT_TFL_FLOAT32);
}

static const oct_twin_tensor **tensors(oct_twin_run *r, const int *v, int n)
{
    const oct_twin_tensor **t = oct_arena_calloc(r->arena, (size_t)n + 1, sizeof *t);
    for (int i = 0; t && i < n; i++)
        t[i] = v[i] >= 0 && (size_t)v[i] < r->m->n_tensor ? &r->tensor[v[i]] : NULL;
    return t;
}

static oct_status prepare(oct_twin_run *r, size_t i, oct_err *err)
{
    const oct_tfl_operator *op = &r->m->op[i];
    oct_twin_call *c = &r->call[i];
    *c = (oct_twin_call){ .twin = r->twin, .op = op, .n_in = op->n_in, .n_out = op->n_out };
    c->n_within = op->n_within;
    if (!(c->in = tensors(r, op->in, op->n_in)) || !(c->out = tensors(r, op->out, op->n_out)) ||
        !(c->within = tensors(r, op->within, op->n_within)))
        return oct_nomem(err);
    for (int k = 0; k < c->n_out; k++)
        if (!c->out[k] || c->out[k]->t->data)
            return oct_twin_unfit(c, "it has no place for a result", err);
    for (size_t list = 0; r->twin->rules[list] && !r->rule[i]; list++)
        for (const oct_twin_rule *rule = r->twin->rules[list]; rule->compute && !r->rule[i]; rule++)
            r->rule[i] = fits(rule, c) ? rule : NULL;
    return r->rule[i] ? OCT_OK : oct_twin_cannot(c, err, "it is not known how that runtime computes it on these types");
}

static oct_status open_run(oct_twin_run *r, oct_err *err)
{
    const oct_tfl_model *m = r->m;
    OCT_TRY(oct_twin_bounded(m, err));
    r->tensor = oct_arena_calloc(r->arena, m->n_tensor + 1, sizeof *r->tensor);
    r->call = oct_arena_calloc(r->arena, m->n_op + 1, sizeof *r->call);
    r->rule = oct_arena_calloc(r->arena, m->n_op + 1, sizeof *r->rule);
    if (!r->tensor || !r->call || !r->rule)
        return oct_nomem(err);
    for (size_t i = 0; i < m->n_tensor; i++)
        OCT_TRY(place(r, i, err));
    for (size_t i = 0; i < m->n_op; i++)
        OCT_TRY(prepare(r, i, err));
    return oct_twin_compute(r, err);
}

oct_status oct_twin_open(const oct_twin *t, const oct_tfl_model *m, oct_twin_run **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_twin_run *r = a ? oct_arena_calloc(a, 1, sizeof *r) : NULL;
    *out = NULL;
    if (!r) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    *r = (oct_twin_run){ .twin = t, .m = m, .arena = a };
    const oct_status s = open_run(r, err);
    if (s != OCT_OK)
        oct_twin_close(r);
    else
        *out = r;
    return s;
}

void oct_twin_close(oct_twin_run *r)
{
    if (r)
        oct_arena_destroy(r->arena);
}

void *oct_twin_data(const oct_twin_run *r, int tensor)
{
    return r->tensor[tensor].data;
}

oct_status oct_twin_compute_one(oct_twin_run *r, size_t i, oct_err *err)
{
    oct_twin_call c = r->call[i];
    if (!(c.scratch = oct_arena_create()))
        return oct_nomem(err);
    const oct_status s = r->rule[i]->compute(&c, r->rule[i]->how, err);
    oct_arena_destroy(c.scratch);
    return s;
}

oct_status oct_twin_compute(oct_twin_run *r, oct_err *err)
{
    for (size_t i = 0; i < r->m->n_op; i++)
        OCT_TRY(oct_twin_compute_one(r, i, err));
    return OCT_OK;
}
