/* Runs a model in our runtime with all its values shown, and its twin operator by operator beside it. */
#include "eval/engines/twin_differences.h"

#include "eval/engines/twin_engine_int.h"
#include "eval/pairs/name_map.h"
#include "runtime/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the twin that shows a value of the graph. */
typedef struct shown {
    int tensor;
    size_t tap;
    oct_tfl_order order;
    void *ours; /* what our runtime has for the sample, as the tensor has it */
    bool there; /* it does, for this batch */
} shown;

/* A value that our runtime shows. */
typedef struct tap {
    float *v;
    size_t room;
    int64_t count; /* 0: it was not shown in this run */
} tap;

struct oct_twin_differences {
    oct_arena *arena;
    oct_twin_engine *e;
    oct_runner *runner;
    shown *shown; /* [n_shown] */
    size_t n_shown;
    const char **name; /* [n_tap] */
    tap *tap;
    size_t n_tap;
    size_t *of_tensor;          /* [tensors]: 1 + its place in shown; 0: it shows no value */
    oct_twin_difference *found; /* [n_found]: of results of operators */
    size_t *found_of;           /* [n_shown]: 1 + its place in found; 0: none */
    size_t n_found;
    oct_twin_output_difference *output; /* [outputs] */
    float *ours;                        /* an output of ours, and the twin's behind it */
    size_t room;
};

/* ---- which tensors show values ---- */

static bool is_compared(const oct_tfl_tensor *t)
{
    return (t->type == OCT_TFL_INT8 || t->type == OCT_TFL_UINT8) && t->quant && t->quant->n == 1;
}

/* Which value of the graph a tensor of a file shows: that of its name, whose reals are those of the tensor's integers.
 * Its order of axes is that of the file which would be written, where that has the same tensor, else the one that fits;
 * where both may, nothing is said. */
static bool find_value(const oct_twin_engine *e, size_t tensor, oct_tfl_tensor *as)
{
    const oct_tfl_model *made = &e->made.model;
    const oct_tfl_tensor *t = &e->m->tensor[tensor], *m = tensor < made->n_tensor ? &made->tensor[tensor] : NULL;
    const oct_tfl_order last = oct_tfl_channels_last(t->rank), plain = oct_tfl_plain();
    const int value = oct_graph_find(e->g, t->name);
    *as = *t;
    if (!e->file)
        return t->value != NULL;
    if (value < 0)
        return false;
    const oct_value *v = &e->g->value[value];
    const bool is_last = oct_twin_has_order(t, v, &last), is_plain = oct_twin_has_order(t, v, &plain);
    as->value = v->name;
    as->order = is_last ? last : plain;
    if (m && m->value && m->type == t->type && oct_twin_has_order(t, v, &m->order))
        as->order = m->order;
    else
        return is_last != is_plain || oct_tfl_same_order(&last, &plain, t->rank);
    return true;
}

/* 1 + the place in d->shown of a tensor; 0: it shows no value, or is left out. */
static size_t place_of(const oct_twin_differences *d, int tensor)
{
    return tensor < 0 ? 0 : d->of_tensor[tensor];
}

static oct_status add_shown(oct_twin_differences *d, size_t tensor, const oct_tfl_tensor *as, oct_name_map *taps,
                            oct_err *err)
{
    const oct_tfl_tensor *t = &d->e->m->tensor[tensor];
    shown *s = &d->shown[d->n_shown];
    size_t at = oct_name_map_find(taps, as->value);
    if (at == SIZE_MAX) {
        at = d->n_tap++;
        d->name[at] = as->value;
        oct_name_map_add(taps, as->value, at);
    }
    *s = (shown){ .tensor = (int)tensor, .tap = at, .order = as->order };
    if (!(s->ours = oct_arena_alloc(d->arena, (size_t)oct_twin_elements(t) * oct_tfl_type_bytes(t->type) + 1)))
        return oct_nomem(err);
    d->of_tensor[tensor] = ++d->n_shown;
    return OCT_OK;
}

/* What is on integers in .tflite alone, and shows a value behind DEQUANTIZE, as Softmax's result. */
static oct_status add_dequantized(oct_twin_differences *d, oct_name_map *taps, oct_err *err)
{
    const oct_tfl_model *m = d->e->m;
    for (size_t i = 0; i < m->n_op; i++) {
        const oct_tfl_operator *op = &m->op[i];
        const size_t at = op->code == OCT_TFL_DEQUANTIZE && op->n_out ? place_of(d, op->out[0]) : 0;
        if (!at || !op->n_in || op->in[0] < 0 || d->of_tensor[op->in[0]] || m->tensor[op->in[0]].data ||
            !is_compared(&m->tensor[op->in[0]]))
            continue;
        const shown *s = &d->shown[at - 1];
        const oct_tfl_tensor as = { .value = d->name[s->tap], .order = s->order };
        OCT_TRY(add_shown(d, (size_t)op->in[0], &as, taps, err));
    }
    return OCT_OK;
}

static oct_status find_shown(oct_twin_differences *d, oct_err *err)
{
    const oct_tfl_model *m = d->e->m;
    oct_name_map taps;
    d->shown = oct_arena_calloc(d->arena, m->n_tensor + 1, sizeof *d->shown);
    d->name = oct_arena_calloc(d->arena, m->n_tensor + 1, sizeof *d->name);
    d->tap = oct_arena_calloc(d->arena, m->n_tensor + 1, sizeof *d->tap);
    d->of_tensor = oct_arena_calloc(d->arena, m->n_tensor + 1, sizeof *d->of_tensor);
    if (!d->shown || !d->name || !d->tap || !d->of_tensor)
        return oct_nomem(err);
    OCT_TRY(oct_name_map_init(&taps, m->n_tensor + 1, d->arena, err));
    for (size_t i = 0; i < m->n_tensor; i++) {
        const oct_tfl_tensor *t = &m->tensor[i];
        const bool real = t->type == OCT_TFL_FLOAT32 && !t->quant;
        oct_tfl_tensor as;
        if (!t->data && (real || is_compared(t)) && find_value(d->e, i, &as))
            OCT_TRY(add_shown(d, i, &as, &taps, err));
    }
    return add_dequantized(d, &taps, err);
}

/* A place for what each operator is found to differ by. */
static oct_status find_operators(oct_twin_differences *d, oct_err *err)
{
    const oct_tfl_model *m = d->e->m;
    d->found = oct_arena_calloc(d->arena, d->n_shown + 1, sizeof *d->found);
    d->found_of = oct_arena_calloc(d->arena, d->n_shown + 1, sizeof *d->found_of);
    d->output = oct_arena_calloc(d->arena, d->e->g->n_output + 1, sizeof *d->output);
    if (!d->found || !d->found_of || !d->output)
        return oct_nomem(err);
    for (size_t i = 0; i < m->n_op; i++)
        for (int k = 0; k < m->op[i].n_out; k++) {
            const int t = m->op[i].out[k];
            const size_t at = place_of(d, t);
            if (!at || !is_compared(&m->tensor[t]) || d->found_of[at - 1])
                continue;
            const char *value = d->e->file ? m->tensor[t].name : d->name[d->shown[at - 1].tap];
            d->found[d->n_found] = (oct_twin_difference){ .value = value, .op = oct_tfl_code_name(m->op[i].code) };
            d->found_of[at - 1] = ++d->n_found;
        }
    return OCT_OK;
}

/* ---- our runtime ---- */

static oct_status reserve(float **v, size_t *room, size_t n, oct_err *err)
{
    size_t bytes;
    if (n <= *room)
        return OCT_OK;
    oct_free(*v);
    *v = NULL;
    *room = 0;
    if (!oct_mul_size(n, sizeof **v, &bytes) || !(*v = oct_alloc(bytes)))
        return oct_nomem(err);
    *room = n;
    return OCT_OK;
}

static oct_status keep(void *arg, size_t at, const oct_operand *x, oct_err *err)
{
    oct_twin_differences *d = arg;
    tap *t = &d->tap[at];
    OCT_TRY(reserve(&t->v, &t->room, (size_t)x->count, err));
    OCT_TRY(oct_operand_to_f32(x, t->v, err));
    t->count = x->count;
    return OCT_OK;
}

static oct_status open_all(oct_twin_differences *d, oct_pool *pool, const oct_input_desc *feed, size_t n_feed,
                           oct_err *err)
{
    OCT_TRY(find_shown(d, err));
    OCT_TRY(find_operators(d, err));
    const oct_plan_opts opts = { .pool = pool, .taps = d->name, .n_taps = d->n_tap };
    OCT_TRY(oct_runner_create(d->e->g, &opts, feed, n_feed, &d->runner, err));
    oct_runner_set_tap(d->runner, keep, d);
    return OCT_OK;
}

oct_status oct_twin_differences_open(oct_twin_engine *e, oct_pool *pool, const oct_input_desc *feed, size_t n_feed,
                                     oct_twin_differences **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_twin_differences *d = a ? oct_arena_calloc(a, 1, sizeof *d) : NULL;
    *out = NULL;
    if (!d) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    d->arena = a;
    d->e = e;
    const oct_status s = open_all(d, pool, feed, n_feed, err);
    if (s != OCT_OK)
        oct_twin_differences_close(d);
    else
        *out = d;
    return s;
}

void oct_twin_differences_close(oct_twin_differences *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->tap && i < d->n_tap; i++)
        oct_free(d->tap[i].v);
    oct_free(d->ours);
    oct_runner_destroy(d->runner);
    oct_arena_destroy(d->arena);
}

/* ---- a sample ---- */

static void *tensor_of(const oct_twin_differences *d, const shown *s)
{
    return oct_twin_data(d->e->run, s->tensor);
}

/* What our runtime has for sample k of `samples`. */
static void take_ours(oct_twin_differences *d, int64_t k, int64_t samples)
{
    for (size_t i = 0; i < d->n_shown; i++) {
        shown *s = &d->shown[i];
        const tap *t = &d->tap[s->tap];
        const oct_tfl_tensor *as = &d->e->m->tensor[s->tensor];
        const int64_t each = oct_twin_elements(as);
        s->there = each > 0 && t->count == each * samples;
        if (s->there)
            oct_twin_round(as, &s->order, t->v + k * each, s->ours);
    }
}

static void count(const oct_twin_differences *d, const shown *s, uint64_t *values, uint64_t *differ, int *most)
{
    const oct_tfl_tensor *t = &d->e->m->tensor[s->tensor];
    const bool u8 = t->type == OCT_TFL_UINT8;
    const int8_t *ours = s->ours, *theirs = tensor_of(d, s);
    const int64_t n = oct_twin_elements(t);
    if (values)
        *values += (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        const int by = u8 ? (uint8_t)ours[i] - (uint8_t)theirs[i] : ours[i] - theirs[i];
        *differ += by != 0;
        *most = abs(by) > *most ? abs(by) : *most;
    }
}

/* Every operator on our operands. */
static oct_status compare_own(oct_twin_differences *d, int64_t k, oct_err *err)
{
    const oct_tfl_model *m = d->e->m;
    OCT_TRY(oct_twin_feed(d->e, k, err));
    for (size_t i = 0; i < m->n_op; i++) {
        OCT_TRY(oct_twin_compute_one(d->e->run, i, err));
        for (int o = 0; o < m->op[i].n_out; o++) {
            const size_t at = place_of(d, m->op[i].out[o]);
            if (!at || !d->shown[at - 1].there)
                continue;
            const shown *s = &d->shown[at - 1];
            const oct_tfl_tensor *t = &m->tensor[s->tensor];
            oct_twin_difference *f = d->found_of[at - 1] ? &d->found[d->found_of[at - 1] - 1] : NULL;
            if (f)
                count(d, s, &f->values, &f->own, &f->own_most);
            memcpy(tensor_of(d, s), s->ours, (size_t)oct_twin_elements(t) * oct_tfl_type_bytes(t->type));
        }
    }
    return OCT_OK;
}

static oct_status compare_outputs(oct_twin_differences *d, const oct_plan *p, int64_t k, int64_t samples, oct_err *err)
{
    for (size_t i = 0; i < d->e->g->n_output; i++) {
        const oct_operand *ours = oct_plan_output(p, i), *theirs = oct_twin_engine_output(d->e, i);
        oct_twin_output_difference *o = &d->output[i];
        if (ours->count != theirs->count || ours->count % samples)
            continue;
        const int64_t each = ours->count / samples;
        OCT_TRY(reserve(&d->ours, &d->room, 2 * (size_t)ours->count, err));
        float *const twins = d->ours + ours->count;
        OCT_TRY(oct_operand_to_f32(ours, d->ours, err));
        OCT_TRY(oct_operand_to_f32(theirs, twins, err));
        for (int64_t x = k * each; x < (k + 1) * each; x++) {
            const double by = fabs((double)d->ours[x] - (double)twins[x]);
            o->differ += by != 0;
            o->most = by > o->most ? by : o->most;
        }
        o->values += (uint64_t)each;
    }
    return OCT_OK;
}

static oct_status compare_all(oct_twin_differences *d, const oct_plan *p, int64_t k, int64_t samples, oct_err *err)
{
    OCT_TRY(oct_twin_feed(d->e, k, err));
    OCT_TRY(oct_twin_compute(d->e->run, err));
    OCT_TRY(oct_twin_collect(d->e, k, err));
    for (size_t i = 0; i < d->n_shown; i++)
        if (d->found_of[i] && d->shown[i].there) {
            oct_twin_difference *f = &d->found[d->found_of[i] - 1];
            count(d, &d->shown[i], NULL, &f->all, &f->all_most);
        }
    return compare_outputs(d, p, k, samples, err);
}

oct_status oct_twin_differences_add(oct_twin_differences *d, const oct_array *arrays, int64_t n, oct_err *err)
{
    oct_plan *p;
    int64_t samples;
    for (size_t i = 0; i < d->n_tap; i++)
        d->tap[i].count = 0;
    OCT_TRY(oct_runner_run(d->runner, arrays, &p, err));
    OCT_TRY(oct_twin_take(d->e, arrays, &samples, err));
    for (int64_t k = 0; k < samples && k < n; k++) {
        take_ours(d, k, samples);
        OCT_TRY(compare_own(d, k, err));
        OCT_TRY(compare_all(d, p, k, samples, err));
    }
    return OCT_OK;
}

const oct_twin_difference *oct_twin_differences_at(const oct_twin_differences *d, size_t i)
{
    return i < d->n_found ? &d->found[i] : NULL;
}

const oct_twin_output_difference *oct_twin_differences_output(const oct_twin_differences *d, size_t i)
{
    return &d->output[i];
}
