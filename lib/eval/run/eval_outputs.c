/* The outputs of an evaluation: their shapes for a sample, and what they have in common with the float model's, as
 * numbers, answers or rows. */
#include "eval/run/eval_int.h"

#include "passes/pass.h"

#include <math.h>
#include <string.h>

static oct_status find_forms(ev_evaluation *e, const oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < e->n_out; i++) {
        const oct_shape *s = &g->value[g->output[i]].shape;
        e->open_axis[i] = -1;
        for (int d = 1; d < s->rank; d++)
            e->open_axis[i] = s->d[d].n < 0 ? d : e->open_axis[i];
    }
    return oct_output_forms(g, e->form, err);
}

oct_status ev_outputs_open(ev_evaluation *e, oct_err *err)
{
    oct_graph *own;
    oct_err why = OCT_ERR_INIT;
    e->form = oct_arena_calloc(e->arena, e->n_out, sizeof *e->form);
    e->open_axis = oct_arena_calloc(e->arena, e->n_out, sizeof *e->open_axis);
    if (!e->form || !e->open_axis)
        return oct_nomem(err);
    OCT_TRY(oct_graph_clone(e->models[0].graph, &own, err));
    oct_status s = oct_infer_shapes(own, &why); /* types of the values between; the model's graph stays as it is */
    s = s == OCT_ENOMEM ? oct_nomem(err) : find_forms(e, own, err);
    oct_graph_destroy(own);
    return s;
}

void ev_outputs_close(ev_evaluation *e)
{
    ev_release(&e->rows[0]);
    ev_release(&e->rows[1]);
    ev_release(&e->scale);
    ev_release(&e->taken);
}

void ev_output_shape(const ev_evaluation *e, ev_subject *s, size_t i, const oct_operand *t, int64_t rows)
{
    const bool cut = t->rank > 0 && (rows > 0 ? t->dims[0] == rows : t->dims[0] == 1 && t->rank > 1);
    int64_t *dims = s->dims + i * OCT_MAX_RANK;
    memcpy(dims, t->dims, sizeof t->dims);
    const bool divides = rows > 0 && s->row[i] * rows == t->count;
    if (!cut && divides && t->rank > 0)
        dims[0] /= rows;
    s->tensor[i] = (oct_set_tensor){ .name = e->models[0].graph->value[e->models[0].graph->output[i]].name,
                                     .rank = t->rank - cut,
                                     .dims = dims + cut,
                                     .n = (size_t)(divides ? s->row[i] : t->count),
                                     .codes = e->form[i] == OCT_HOLDS_CODES && !oct_dtype_is_real(t->dtype) };
}

oct_status ev_output_values(const oct_operand *t, float *to, oct_err *err)
{
    const oct_str *s = t->data;
    if (t->dtype != OCT_STRING)
        return oct_operand_to_f32(t, to, err);
    for (int64_t i = 0; i < t->count; i++) {
        uint32_t h = 2166136261u; /* FNV-1a */
        for (size_t k = 0; k < s[i].n; k++)
            h = (h ^ (uint8_t)s[i].s[k]) * 16777619u;
        to[i] = (float)(h >> 8);
    }
    return OCT_OK;
}

/* All dimensions of an output for one sample, and its values. */
typedef struct sample_output {
    const int64_t *dims;
    int rank;
    const float *v;
    size_t n;
} sample_output;

static sample_output output_of(const ev_evaluation *e, const ev_subject *s, size_t o, size_t i)
{
    const oct_set_tensor *t = &s->tensor[o];
    const int64_t *all = s->dims + o * OCT_MAX_RANK;
    /* A dimension of 1 may be a batch of one sample, or a single row. */
    const int lead = t->dims != all && all[0] == 1;
    return (sample_output){ t->dims - lead, t->rank + lead, s->out[o].v + (e->by_row[o] ? i * t->n : 0), t->n };
}

/* The dimension along which rows lie: the one that differs between the two, or whose size is not fixed; else the first
 * of more than 1. -1: the two have no rows in common. */
static int row_axis(const sample_output *a, const sample_output *b, int open)
{
    int differs = -1, first = -1, n = 0;
    if (a->rank != b->rank || !a->rank)
        return -1;
    for (int d = a->rank; d-- > 0;) {
        if (a->dims[d] != b->dims[d]) {
            differs = d;
            n++;
        }
        first = a->dims[d] > 1 ? d : first;
    }
    return n > 1 ? -1 : n ? differs : open >= 0 && open < a->rank ? open : first >= 0 ? first : 0;
}

/* Writes each row in one piece. */
static void gather_rows(const sample_output *x, int axis, float *to)
{
    const size_t n = (size_t)x->dims[axis];
    size_t inner = 1, outer = 1;
    for (int d = 0; d < x->rank; d++)
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : (size_t)x->dims[d];
    for (size_t r = 0; r < n; r++)
        for (size_t k = 0; k < outer; k++, to += inner)
            memcpy(to, x->v + (k * n + r) * inner, inner * sizeof *to);
}

static oct_status match_rows(ev_evaluation *e, const sample_output *a, const sample_output *b, int open,
                             oct_match_count *m, oct_err *err)
{
    const int axis = row_axis(a, b, open);
    const size_t n_a = axis >= 0 ? (size_t)a->dims[axis] : a->n, n_b = axis >= 0 ? (size_t)b->dims[axis] : b->n;
    const size_t columns = axis < 0 ? 1 : n_a ? a->n / n_a : n_b ? b->n / n_b : 1;
    OCT_TRY(ev_reserve(&e->rows[0], a->n + 1, err));
    OCT_TRY(ev_reserve(&e->rows[1], b->n + 1, err));
    OCT_TRY(ev_reserve(&e->scale, columns + 1, err));
    OCT_TRY(ev_reserve(&e->taken, n_b / sizeof(float) + 1, err));
    if (axis >= 0) {
        gather_rows(a, axis, e->rows[0].v);
        gather_rows(b, axis, e->rows[1].v);
    } else {
        memcpy(e->rows[0].v, a->v, a->n * sizeof(float));
        memcpy(e->rows[1].v, b->v, b->n * sizeof(float));
    }
    *m = oct_match_rows(e->rows[0].v, n_a, e->rows[1].v, n_b, columns, (uint8_t *)e->taken.v, e->scale.v);
    return OCT_OK;
}

/* How many numbers of two outputs correspond, from the first on. Of other lengths, that is so for a list of sorted
 * numbers; elsewhere a difference in length moves what follows it, so that nothing says which values correspond. */
static size_t shared(oct_output_form form, bool apart, const sample_output *a, const sample_output *b)
{
    const bool list =
        row_axis(a, b, -1) == 0 || (a->rank == b->rank && a->rank == 2 && a->dims[0] == 1 && b->dims[0] == 1);
    return !apart ? a->n : form == OCT_HOLDS_SORTED && list ? (a->n < b->n ? a->n : b->n) : 0;
}

/* Layers may agree in NaN, which a later layer removes. In an output NaN is no result, and agrees with nothing. */
static uint64_t both_nan(const float *y, const float *yq, size_t n)
{
    uint64_t both = 0;
    for (size_t i = 0; i < n; i++)
        both += isnan(y[i]) && isnan(yq[i]);
    return both;
}

/* Compares an output of sample i of the batch with the reference. */
static oct_status compare_output(ev_evaluation *e, ev_subject *s, size_t o, size_t i, oct_err *err)
{
    const sample_output a = output_of(e, &e->subject[0], o, i), b = output_of(e, s, o, i);
    ev_output_tally *t = &s->compared[o];
    const bool numbers = oct_output_is_numbers(e->form[o]);
    t->values += b.n;
    t->ref_values += a.n;
    t->apart += s->apart[o];
    const size_t n = shared(e->form[o], s->apart[o], &a, &b);
    t->compared += !numbers || n > 0 || !s->apart[o];
    if (!numbers) {
        if (e->form[o] == OCT_HOLDS_ROWS)
            OCT_TRY(match_rows(e, &a, &b, e->open_axis[o] - (e->by_row[o] && a.dims != s->dims + o * OCT_MAX_RANK),
                               &s->match[o], err));
        else
            s->match[o] = oct_match_codes(a.v, a.n, b.v, b.n);
        t->match.found += s->match[o].found;
        t->match.of += s->match[o].of;
    } else {
        oct_error_add(&s->sample[o], a.v, b.v, n);
        s->sample[o].broken += both_nan(a.v, b.v, n);
        oct_error_sum_add(&s->sum[o], &s->sample[o]);
    }
    return OCT_OK;
}

oct_status ev_outputs_compare(ev_evaluation *e, ev_subject *s, size_t i, oct_err *err)
{
    for (size_t o = 0; o < e->n_out; o++) {
        s->sample[o] = (oct_error){ 0 };
        s->match[o] = (oct_match_count){ 0 };
        if (e->by_row[o] || i == 0)
            OCT_TRY(compare_output(e, s, o, i, err));
    }
    return OCT_OK;
}

void ev_output_result(const ev_evaluation *e, const ev_subject *s, size_t i, oct_eval_output *o)
{
    const oct_graph *ref = e->models[0].graph;
    const oct_error *x = &s->total[i];
    const ev_output_tally *t = &s->compared[i];
    *o = (oct_eval_output){ .name = ref->value[ref->output[i]].name,
                            .form = e->form[i],
                            .sqnr_db = x->n ? oct_error_sqnr(x) : NAN,
                            .cosine = x->n ? oct_error_cosine(x) : NAN,
                            .max_abs = x->n ? x->max_abs : NAN,
                            .broken = x->broken,
                            .compared = t->compared,
                            .apart = t->apart };
    o->matched = t->match.of ? (double)t->match.found / (double)t->match.of : NAN;
    o->longer = t->ref_values ? (double)t->values / (double)t->ref_values - 1 : NAN;
}
