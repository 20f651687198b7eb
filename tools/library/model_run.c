/* Running a model on arrays. */
#include "model_int.h"

#include <string.h>

/* The input for an array: by its name, else by its position. -1: there is none. */
static int input_of(const octet_model *m, const octet_array *a, size_t place)
{
    if (!a->name)
        return place < m->core->n_in ? (int)place : -1;
    for (size_t i = 0; i < m->core->n_in; i++)
        if (strcmp(m->core->want[i].name, a->name) == 0)
            return (int)i;
    return -1;
}

oct_status octet_take_array(const octet_array *a, const char *kind, const char *name, oct_array *to, oct_err *err)
{
    static char nothing[1]; /* NULL would mean that the elements are not known */
    if (a->rank < 0 || a->rank > OCTET_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s '%s': rank %d is not between 0 and %d", kind, name, a->rank,
                        OCTET_MAX_RANK);
    *to = (oct_array){ .dtype = (oct_dtype)a->type, .rank = a->rank, .data = (void *)a->data };
    int64_t count = 1;
    for (int k = 0; k < a->rank; k++) {
        if (a->dims[k] < 0 || __builtin_mul_overflow(count, a->dims[k], &count))
            return oct_fail(err, OCT_EMALFORMED, "%s '%s': dimension %d is %lld", kind, name, k, (long long)a->dims[k]);
        to->dims[k] = a->dims[k];
    }
    if (!oct_dtype_bytes(to->dtype, count, &to->bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s '%s': arrays of type %s cannot be given", kind, name,
                        oct_dtype_name(to->dtype));
    if (!a->data && to->bytes)
        return oct_fail(err, OCT_EMALFORMED, "%s '%s': there is no data", kind, name);
    if (!a->data)
        to->data = nothing;
    return OCT_OK;
}

static oct_status take_input(octet_model *m, const octet_array *a, size_t place, bool *given, oct_err *err)
{
    const int i = input_of(m, a, place);
    if (i < 0 && a->name)
        return oct_fail(err, OCT_EMALFORMED, "the model has no input '%s'", a->name);
    if (i < 0)
        return oct_fail(err, OCT_EMALFORMED, "the model has %zu inputs, and more arrays are given", m->core->n_in);
    const char *name = m->core->want[i].name;
    if (given[i])
        return oct_fail(err, OCT_EMALFORMED, "input '%s' is given twice", name);
    given[i] = true;
    return octet_take_array(a, "input", name, &m->fed[i], err);
}

static oct_status take_inputs(octet_model *m, const octet_array *in, size_t n_in, oct_err *err)
{
    bool *given = oct_calloc(m->core->n_in + 1, sizeof *given);
    if (!given)
        return oct_nomem(err);
    oct_status s = OCT_OK;
    for (size_t i = 0; i < n_in && s == OCT_OK; i++)
        s = take_input(m, &in[i], i, given, err);
    for (size_t i = 0; i < m->core->n_in && s == OCT_OK; i++)
        if (!given[i])
            s = oct_fail(err, OCT_EMALFORMED, "input '%s' is missing", m->core->want[i].name);
    oct_free(given);
    return s;
}

/* Whether the bytes are those of an array that the caller gave, or a part of it. */
static bool is_of_input(const octet_model *m, const void *p, size_t bytes)
{
    const uintptr_t at = (uintptr_t)p;
    bool any = false;
    for (size_t i = 0; i < m->core->n_in && !any; i++) {
        const uintptr_t from = (uintptr_t)m->fed[i].data;
        any = bytes && at < from + m->fed[i].bytes && from < at + bytes;
    }
    return any;
}

static oct_status own_output(octet_copy *c, const void **data, size_t bytes, oct_err *err)
{
    if (bytes > c->cap) {
        oct_free(c->data);
        c->data = oct_alloc(bytes);
        c->cap = c->data ? bytes : 0;
        if (!c->data)
            return oct_nomem(err);
    }
    memcpy(c->data, *data, bytes);
    *data = c->data;
    return OCT_OK;
}

/* Type and shape of output i, without data. *bytes: of its elements. */
static oct_status describe_output(octet_model *m, const oct_plan *plan, size_t i, size_t *bytes, oct_err *err)
{
    const oct_operand *t = oct_plan_output(plan, i);
    if (!oct_dtype_bytes(t->dtype, t->count, bytes) || t->rank > OCTET_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "output '%s' of type %s is no array", oct_plan_output_name(plan, i),
                        oct_dtype_name(t->dtype));
    octet_array *a = &m->made[i];
    *a = (octet_array){ .name = m->core->output[i].name, .type = (octet_type)t->dtype, .rank = t->rank };
    for (int k = 0; k < t->rank; k++)
        a->dims[k] = t->dims[k];
    return OCT_OK;
}

static oct_status give_output(octet_model *m, const oct_plan *plan, size_t i, oct_err *err)
{
    static const char nothing[1];
    const oct_operand *t = oct_plan_output(plan, i);
    octet_array *a = &m->made[i];
    size_t bytes;
    OCT_TRY(describe_output(m, plan, i, &bytes, err));
    a->data = t->data ? t->data : nothing;
    return is_of_input(m, a->data, bytes) ? own_output(&m->copy[i], &a->data, bytes, err) : OCT_OK;
}

/* The library has no elements of an array yet, and no address of them is wrong. */
static oct_status take_shapes(octet_model *m, const octet_array *in, size_t n_in, oct_err *err)
{
    static const char somewhere[1];
    octet_array *shape = oct_calloc(n_in + 1, sizeof *shape);
    if (!shape)
        return oct_nomem(err);
    for (size_t i = 0; i < n_in; i++) {
        shape[i] = in[i];
        shape[i].data = somewhere;
    }
    const oct_status s = take_inputs(m, shape, n_in, err);
    oct_free(shape);
    return s;
}

typedef struct given {
    octet_model *m;
    const octet_array *in;
    size_t n_in;
    const octet_array **out;
    size_t *n_out;
    octet_place_fn place;
    void *context;
} given;

static oct_status check_given(const given *x, oct_err *err)
{
    if (!x->m)
        return oct_fail(err, OCT_EUSAGE, "the model is NULL");
    if (!x->in && x->n_in)
        return oct_fail(err, OCT_EUSAGE, "%zu arrays at NULL", x->n_in);
    return OCT_OK;
}

static oct_status run_arrays(const given *x, oct_err *err)
{
    oct_plan *plan;
    octet_model *m = x->m;
    OCT_TRY(take_inputs(m, x->in, x->n_in, err));
    OCT_TRY(oct_runner_run(m->runner, m->fed, &plan, err));
    for (size_t i = 0; i < m->core->n_out; i++)
        OCT_TRY(give_output(m, plan, i, err));
    *x->out = m->made;
    *x->n_out = m->core->n_out;
    return OCT_OK;
}

/* Asks where output i is wanted. */
static oct_status place_output(const given *x, const oct_plan *plan, size_t i, oct_err *err)
{
    size_t bytes;
    OCT_TRY(describe_output(x->m, plan, i, &bytes, err));
    x->m->made[i].data = x->place(x->context, i, &x->m->made[i]);
    return OCT_OK;
}

/* What the run has not written where it is wanted. */
static void copy_output(octet_model *m, const oct_plan *plan, size_t i)
{
    const oct_operand *t = oct_plan_output(plan, i);
    void *to = (void *)(uintptr_t)m->made[i].data;
    size_t bytes;
    if (to && to != t->data && oct_dtype_bytes(t->dtype, t->count, &bytes) && bytes)
        memmove(to, t->data, bytes);
}

/* Outputs whose shapes are known before the run are written where they are wanted; others are copied. */
static oct_status run_placed(const given *x, oct_err *err)
{
    enum { ALIGN = 64 };
    octet_model *m = x->m;
    oct_plan *plan;
    OCT_TRY(take_inputs(m, x->in, x->n_in, err));
    OCT_TRY(oct_runner_plan(m->runner, m->fed, &plan, err));
    const bool known = oct_plan_knows_outputs(plan);
    oct_status s = OCT_OK;
    for (size_t i = 0; i < m->core->n_out && known && s == OCT_OK; i++) {
        s = place_output(x, plan, i, err);
        void *at = (void *)(uintptr_t)m->made[i].data;
        oct_plan_set_output(plan, i, (uintptr_t)at % ALIGN == 0 ? at : NULL);
    }
    s = s == OCT_OK ? oct_runner_run(m->runner, m->fed, &plan, err) : s;
    for (size_t i = 0; i < m->core->n_out && s == OCT_OK; i++) {
        s = known ? OCT_OK : place_output(x, plan, i, err);
        if (s == OCT_OK)
            copy_output(m, plan, i);
    }
    for (size_t i = 0; i < m->core->n_out; i++)
        oct_plan_set_output(plan, i, NULL);
    return s;
}

static oct_status prepare(const given *x, oct_err *err)
{
    oct_plan *plan;
    OCT_TRY(take_shapes(x->m, x->in, x->n_in, err));
    return oct_runner_plan(x->m->runner, x->m->fed, &plan, err);
}

static oct_status alone(const given *x, oct_status (*work)(const given *, oct_err *), oct_err *err)
{
    OCT_TRY(check_given(x, err));
    if (atomic_exchange(&x->m->busy, true))
        return oct_fail(err, OCT_EUSAGE, "the model is in use by another call");
    const oct_status s = work(x, err);
    atomic_store(&x->m->busy, false);
    return s;
}

static oct_status run(octet *o, void *arg, oct_err *err)
{
    const given *x = arg;
    if (!x->out || !x->n_out)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the outputs: %s is NULL", x->out ? "n_out" : "out");
    return alone(x, run_arrays, err);
}

static oct_status prepare_shapes(octet *o, void *arg, oct_err *err)
{
    return alone(arg, prepare, err);
}

octet_status octet_model_run(octet *o, octet_model *m, const octet_array *in, size_t n_in, const octet_array **out,
                             size_t *n_out)
{
    if (out)
        *out = NULL;
    if (n_out)
        *n_out = 0;
    return octet_do(o, run, &(given){ .m = m, .in = in, .n_in = n_in, .out = out, .n_out = n_out });
}

static oct_status run_into(octet *o, void *arg, oct_err *err)
{
    const given *x = arg;
    if (!x->place)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the outputs: place is NULL");
    return alone(x, run_placed, err);
}

octet_status octet_model_run_into(octet *o, octet_model *m, const octet_array *in, size_t n_in, octet_place_fn place,
                                  void *context)
{
    return octet_do(o, run_into, &(given){ .m = m, .in = in, .n_in = n_in, .place = place, .context = context });
}

octet_status octet_model_prepare(octet *o, octet_model *m, const octet_array *in, size_t n_in)
{
    return octet_do(o, prepare_shapes, &(given){ .m = m, .in = in, .n_in = n_in });
}

/* ---- measuring ---- */

typedef struct profiling {
    octet_model *m;
    bool on;
} profiling;

static oct_status profile(octet *o, void *arg, oct_err *err)
{
    const profiling *x = arg;
    if (!x->m)
        return oct_fail(err, OCT_EUSAGE, "the model is NULL");
    if (atomic_exchange(&x->m->busy, true))
        return oct_fail(err, OCT_EUSAGE, "the model is in use by another call");
    x->m->profile = x->on;
    oct_runner_profile(x->m->runner, x->on);
    atomic_store(&x->m->busy, false);
    return OCT_OK;
}

octet_status octet_model_profile(octet *o, octet_model *m, int on)
{
    return octet_do(o, profile, &(profiling){ m, on != 0 });
}

int octet_model_step(const octet_model *m, size_t i, octet_step *step)
{
    const oct_plan *p;
    for (size_t k = 0; m && step && (p = oct_runner_kept(m->runner, k)); k++) {
        const size_t n = oct_plan_n_steps(p);
        if (i >= n) {
            i -= n;
            continue;
        }
        const oct_step_info s = oct_plan_step(p, i);
        *step = (octet_step){ s.name, s.op, s.scheme, s.algorithm, s.kernel, s.seconds, s.calls, s.macs };
        return 1;
    }
    return 0;
}
