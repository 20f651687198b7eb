/* Evaluates in one pass over the samples: all models run each batch, and scores and errors are gathered sample by
 * sample. */
#include "eval/run/eval_int.h"

#include "base/io.h"
#include "eval/metrics/bootstrap.h"
#include "kernels/math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- helpers ---- */

oct_status ev_reserve(ev_floats *f, size_t n, oct_err *err)
{
    if (n <= f->cap)
        return OCT_OK;
    size_t bytes;
    float *v = oct_mul_size(n, sizeof *v, &bytes) ? oct_alloc(bytes) : NULL;
    if (!v)
        return oct_nomem(err);
    oct_free(f->v);
    *f = (ev_floats){ v, n };
    return OCT_OK;
}

void ev_release(ev_floats *f)
{
    oct_free(f->v);
    *f = (ev_floats){ NULL, 0 };
}

oct_status oct_eval_inputs(const oct_eval_model *models, size_t n_models, oct_arena *arena, oct_input_desc **inputs,
                           size_t *n_inputs, oct_err *err)
{
    const oct_graph **g = oct_arena_calloc(arena, n_models, sizeof *g);
    if (!g)
        return oct_nomem(err);
    for (size_t k = 0; k < n_models; k++)
        g[k] = models[k].graph;
    return oct_inputs_describe(g, n_models, arena, inputs, n_inputs, err);
}

/* ---- setting up ---- */

static oct_status pair_outputs(const ev_evaluation *e, ev_subject *s, oct_err *err)
{
    const oct_graph *ref = e->models[0].graph, *g = s->model->graph;
    if (g->n_output != ref->n_output)
        return oct_fail(err, OCT_EMALFORMED, "%s: has %zu outputs, %s has %zu", s->model->name, g->n_output,
                        e->models[0].name, ref->n_output);
    for (size_t i = 0; i < ref->n_output; i++) {
        s->from[i] = i;
        for (size_t k = 0; k < g->n_output; k++)
            if (strcmp(g->value[g->output[k]].name, ref->value[ref->output[i]].name) == 0)
                s->from[i] = k;
    }
    return OCT_OK;
}

/* Finds the states among this model's outputs. */
static oct_status create_carry(const ev_evaluation *e, ev_subject *s, oct_err *err)
{
    oct_state *states = oct_arena_calloc(e->arena, e->o->n_states + 1, sizeof *states);
    if (!states)
        return oct_nomem(err);
    for (size_t i = 0; i < e->o->n_states; i++)
        states[i] = (oct_state){ e->o->states[i].input, s->from[e->o->states[i].output] };
    return oct_carry_create(states, e->o->n_states, e->n_inputs, &s->carry, err);
}

static oct_status create_subject(ev_evaluation *e, ev_subject *s, const oct_eval_model *m, oct_err *err)
{
    s->model = m;
    s->from = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->from);
    s->out = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->out);
    s->total = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->total);
    s->sum = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->sum);
    s->sample = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->sample);
    s->seconds = oct_arena_calloc(e->arena, EV_MOST_RUNS, sizeof *s->seconds);
    s->tensor = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->tensor);
    s->dims = oct_arena_calloc(e->arena, (e->n_out + 1) * OCT_MAX_RANK, sizeof *s->dims);
    s->apart = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->apart);
    s->match = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->match);
    s->compared = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->compared);
    s->row = oct_arena_calloc(e->arena, e->n_out + 1, sizeof *s->row);
    if (!s->from || !s->out || !s->sum || !s->total || !s->sample || !s->seconds || !s->tensor || !s->dims ||
        !s->apart || !s->match || !s->compared || !s->row)
        return oct_nomem(err);
    OCT_TRY(pair_outputs(e, s, err));
    const oct_engine_opts how = { e->o->pool, m->bf16, m->remote, m->unwritten ? NULL : m->name, m->twin };
    oct_status st = oct_engine_open(&s->engine, m->graph, &how, e->inputs, e->n_inputs, err);
    if (st == OCT_OK)
        st = create_carry(e, s, err);
    if (st == OCT_OK && e->o->command)
        st = oct_command_open(e->models[0].graph, s->from, &s->command, err);
    if (st != OCT_OK)
        oct_within(err, "%s", m->name);
    return st;
}

/* Layers are those of models in our runtime, or of twins beside it. */
static oct_status compare_layers(ev_evaluation *e, oct_err *err)
{
    bool twins = false;
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        if (!s->engine.as)
            continue;
        twins = true;
        if (e->part || e->joined) /* parts hold what samples contribute to scores */
            continue;
        const oct_status st =
            oct_twin_differences_open(s->engine.as, e->o->pool, e->inputs, e->n_inputs, &s->differences, err);
        if (st != OCT_OK) {
            oct_within(err, "%s", s->model->name);
            return st;
        }
    }
    return twins || e->n_subject < 2
               ? OCT_OK
               : ev_layers_create(e->models, e->n_subject, e->o->pool, e->inputs, e->n_inputs, &e->layers, err);
}

static oct_status setup(ev_evaluation *e, const oct_eval_model *models, size_t n, oct_err *err)
{
    e->models = models;
    e->n_out = models[0].graph->n_output;
    if (e->n_out == 0)
        return oct_fail(err, OCT_EMALFORMED, "%s: the model has no outputs", models[0].name);
    OCT_TRY(oct_eval_inputs(models, n, e->arena, &e->inputs, &e->n_inputs, err));
    OCT_TRY(ev_outputs_open(e, err));
    e->subject = oct_arena_calloc(e->arena, n, sizeof *e->subject);
    e->count = oct_arena_calloc(e->arena, e->n_out, sizeof *e->count);
    e->row = oct_arena_calloc(e->arena, e->n_out, sizeof *e->row);
    e->by_row = oct_arena_calloc(e->arena, e->n_out, sizeof *e->by_row);
    e->operand = oct_arena_calloc(e->arena, e->n_out, sizeof *e->operand);
    e->reference = oct_arena_calloc(e->arena, e->n_out, sizeof *e->reference);
    e->values = oct_arena_calloc(e->arena, e->n_out, sizeof *e->values);
    e->first = oct_arena_calloc(e->arena, e->n_inputs + 1, sizeof *e->first);
    e->arrays = oct_arena_calloc(e->arena, n, sizeof *e->arrays);
    if (!e->subject || !e->arrays || !e->count || !e->row || !e->by_row || !e->operand || !e->reference || !e->values ||
        !e->first)
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++) {
        e->n_subject++;
        OCT_TRY(create_subject(e, &e->subject[k], &models[k], err));
        OCT_TRY(oct_input_fit_find(models[k].graph, e->inputs, e->n_inputs, e->arena, &e->subject[k].fit,
                                   &e->subject[k].n_fit, err));
    }
    return e->o->layer_samples ? compare_layers(e, err) : OCT_OK;
}

static void teardown(ev_evaluation *e)
{
    for (size_t k = 0; k < e->n_subject; k++) {
        oct_twin_differences_close(e->subject[k].differences);
        oct_engine_close(&e->subject[k].engine);
        oct_carry_destroy(e->subject[k].carry);
        oct_command_close(e->subject[k].command);
        for (size_t i = 0; e->subject[k].out && i < e->n_out; i++)
            ev_release(&e->subject[k].out[i]);
    }
    for (size_t i = 0; e->first && i < e->n_inputs; i++)
        oct_array_free(&e->first[i]);
    oct_buf_free(&e->first_blob);
    ev_release(&e->in);
    ev_outputs_close(e);
    oct_tokens_free(&e->tokens);
    ev_layers_destroy(e->layers);
    ev_sets_destroy(e->sets);
    oct_arena_destroy(e->arena);
}

/* ---- choice of metrics ---- */

/* The shape of an output for one sample, without dimensions of 1: *n is the last one's size. Returns how many there
 * are. */
static int wide_dims(const oct_set_tensor *t, int64_t *n)
{
    int wide = 0;
    *n = 1;
    for (int k = 0; k < t->rank; k++) {
        wide += t->dims[k] > 1;
        *n = t->dims[k] > 1 ? t->dims[k] : *n;
    }
    return wide;
}

static bool same_shape(const oct_array *a, const oct_operand *t)
{
    return a->rank == t->rank && memcmp(a->dims, t->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

/* Checks that a metric of a set has what it needs. */
static oct_status check_set(const ev_evaluation *e, const oct_metric *m, oct_err *err)
{
    OCT_TRY(oct_metric_suits(m, &e->judging, err));
    if (m->set[OCT_SET_VALUES] || e->kase.set != OCT_SET_CLASSES || e->kase.labels)
        return OCT_OK;
    return oct_fail(err, OCT_EUSAGE, "metric '%s' needs labels, and the data has none", m->name);
}

/* Whether the metric is defined for the outputs. A rule that names an output means that one, which its set looks
 * for. */
static oct_status check_shapes(const ev_evaluation *e, const oct_metric *m, oct_err *err)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const bool of_class = m->kind == OCT_METRIC_SET && m->set[OCT_SET_CLASSES] && e->kase.set == OCT_SET_CLASSES;
    char dims[96], shape[120];
    if (m->kind == OCT_METRIC_SET && e->judging.rule->output.given)
        return OCT_OK;
    oct_dims_text(dims, t->rank, t->dims);
    snprintf(shape, sizeof shape, "%s for a sample", dims);
    if (of_class && (e->kase.names || (!e->kase.list && !e->kase.single))) {
        oct_fail(err, OCT_EUSAGE, "metric '%s' is of one class for each sample, and the first output is %s", m->name,
                 shape);
        oct_hint(err, "a rule may say which output has the scores (--decode)");
        return OCT_EUSAGE;
    }
    return oct_metric_check(m, &e->kase, shape, err);
}

/* Adds a requested metric, if it is not there. */
static oct_status take_metric(ev_evaluation *e, const oct_metric *asked, oct_err *err)
{
    const oct_metric *m = oct_metric_as(asked, &e->kase);
    for (size_t i = 0; i < e->n_metric; i++)
        if (e->metric[i] == m)
            return OCT_OK;
    if (strncmp(m->name, "top", 3) == 0 && !e->kase.labels)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' needs labels, and the data has none", m->name);
    if (m->kind == OCT_METRIC_SET)
        OCT_TRY(check_set(e, m, err));
    if (m->distributions && !e->width)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' is of distributions over classes, and the first output has none",
                        m->name);
    if (m->relative && !e->kase.compared)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' compares two models, and there is one", m->name);
    OCT_TRY(check_shapes(e, asked, err));
    e->metric[e->n_metric++] = m;
    return OCT_OK;
}

static oct_status decide_metrics(ev_evaluation *e, oct_err *err)
{
    const oct_eval_options *o = e->o;
    size_t room = 0;
    while (oct_metric_at(room))
        room++;
    e->metric = oct_arena_calloc(e->arena, room + o->n_metrics + o->n_needed + 2, sizeof *e->metric);
    if (!e->metric)
        return oct_nomem(err);
    if (o->command)
        e->metric[e->n_metric++] = oct_command_metric(o->command, false);
    for (size_t i = 0; o->metrics && i < o->n_metrics; i++)
        OCT_TRY(take_metric(e, o->metrics[i], err));
    for (size_t i = 0; !o->metrics && i < room; i++)
        if (oct_metric_at(i)->applies(&e->kase))
            e->metric[e->n_metric++] = oct_metric_as(oct_metric_at(i), &e->kase);
    for (size_t i = 0; i < o->n_needed; i++)
        OCT_TRY(take_metric(e, o->needed[i], err));
    if (o->main_limit && e->n_metric &&
        e->metric[0]->kind == OCT_METRIC_PROPORTION) /* others may have no drop; then the limit is of a later one */
        OCT_TRY(oct_drop_limit_check(o->main_limit, e->metric[0], err));
    for (size_t i = 0; i < e->n_metric; i++) {
        e->need_tokens |= e->metric[i]->kind == OCT_METRIC_TOKENS;
        e->of_tokens |= e->need_tokens || e->metric[i]->distributions;
    }
    OCT_TRY(ev_sets_create(&e->judging, e->metric, e->n_metric, o->per_class, e->n_subject, &e->sets, err));
    e->score = oct_arena_calloc(e->arena, e->n_metric + 1, e->n_subject * sizeof *e->score);
    e->weight = oct_arena_calloc(e->arena, e->n_metric + 1, e->n_subject * sizeof *e->weight);
    if (!e->score || !e->weight)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++)
        if (!(e->subject[k].tally = oct_arena_calloc(e->arena, e->n_metric + 1, sizeof(ev_tally))))
            return oct_nomem(err);
    return OCT_OK;
}

/* ---- one batch ---- */

/* Whether outputs of the reference for this batch are kept, or may be: those of a sample that ran alone, and depend on
 * it alone. */
static bool may_keep(const ev_evaluation *e, const oct_batch *b, int64_t rows)
{
    const oct_eval_options *o = e->o;
    return o->kept && !e->part && !o->n_states && !o->command && b->n == 1 && rows <= 1;
}

/* What is kept of the batch, in place of a run of the reference; NULL: it must run. */
static const oct_kept_sample *kept_of(const ev_evaluation *e, const oct_batch *b, int64_t rows)
{
    const bool runs = e->o->time_samples && !e->timed; /* for its time */
    return !runs && may_keep(e, b, rows) ? oct_kept_find(e->o->kept, b->indices[0]) : NULL;
}

/* Takes the outputs of the reference from what is kept. */
static oct_status take_kept(ev_evaluation *e, const oct_kept_sample *x, oct_err *err)
{
    ev_subject *s = &e->subject[0];
    for (size_t i = 0; i < e->n_out; i++) {
        const size_t n = (size_t)x->operand[i].count;
        e->operand[i] = x->operand[i];
        OCT_TRY(ev_reserve(&s->out[i], n, err));
        memcpy(s->out[i].v, x->v[i], n * sizeof(float));
    }
    oct_kept_counted(e->o->kept)->taken++;
    return OCT_OK;
}

static oct_status keep_outputs(ev_evaluation *e, const oct_batch *b, oct_err *err)
{
    oct_kept_counted(e->o->kept)->runs++;
    if (oct_kept_find(e->o->kept, b->indices[0]))
        return OCT_OK;
    for (size_t i = 0; i < e->n_out; i++)
        e->values[i] = e->subject[0].out[i].v;
    return oct_kept_add(e->o->kept, b->indices[0], e->operand, e->values, e->n_out, err);
}

/* Runs model k, and sets its values. */
static oct_status run_engine(ev_evaluation *e, size_t k, bool *steady, oct_err *err)
{
    ev_subject *s = &e->subject[k];
    OCT_TRY(oct_engine_run(&s->engine, e->arrays[k], &s->last, err));
    OCT_TRY(oct_carry_keep(s->carry, oct_engine_left, &s->engine, err));
    *steady &= s->plan == s->engine.plan;
    s->plan = s->engine.plan;
    for (size_t i = 0; i < e->n_out; i++) {
        const oct_operand *t = oct_engine_output(&s->engine, s->from[i]);
        e->operand[i] = *t;
        OCT_TRY(ev_reserve(&s->out[i], (size_t)t->count, err));
        OCT_TRY(ev_output_values(t, s->out[i].v, err));
    }
    return OCT_OK;
}

static oct_status run_subject(ev_evaluation *e, size_t k, const oct_batch *b, int64_t rows, bool *steady, oct_err *err)
{
    ev_subject *s = &e->subject[k];
    const oct_kept_sample *kept = k ? NULL : kept_of(e, b, rows);
    e->arrays[k] = oct_carry_arrays(s->carry, b->tensors, b->follows);
    oct_input_fit_add(s->fit, s->n_fit, e->arrays[k]);
    OCT_TRY(kept ? take_kept(e, kept, err) : run_engine(e, k, steady, err));
    for (size_t i = 0; i < e->n_out; i++) {
        const oct_operand *t = &e->operand[i];
        int64_t first;
        s->row[i] = oct_row_elements(t->rank, t->dims, rows, &first);
        s->apart[i] = k && e->count[i] != t->count;
        ev_output_shape(e, s, i, t, rows);
        if (k == 0) {
            e->count[i] = t->count;
            e->row[i] = s->row[i];
            e->by_row[i] = rows > 0 && s->row[i] * rows == t->count;
            e->reference[i] = *t;
        }
    }
    if (k == 0 && !kept && may_keep(e, b, rows))
        OCT_TRY(keep_outputs(e, b, err));
    return s->command ? oct_command_add(s->command, &s->engine, e->src, b, err) : OCT_OK;
}

/* Converts the first input to f32, for reconstruction. */
static oct_status take_input(ev_evaluation *e, const oct_batch *b, const oct_operand *out, oct_err *err)
{
    e->in_f32 = NULL;
    if (b->n_tensors == 0 || !same_shape(&b->tensors[0], out) || b->tensors[0].dtype == OCT_STRING)
        return OCT_OK;
    const oct_array *x = &b->tensors[0];
    OCT_TRY(ev_reserve(&e->in, (size_t)oct_array_count(x), err));
    OCT_TRY(oct_array_convert(x->dtype, x->data, OCT_F32, e->in.v, (size_t)oct_array_count(x), err));
    e->in_f32 = e->in.v;
    return OCT_OK;
}

/* Which places of n values of row i of a batch have a token; NULL: nothing says that some have not. */
static const int64_t *present_of(const ev_evaluation *e, size_t n, size_t i, size_t rows)
{
    const size_t places = e->width ? n / e->width : 0;
    const bool fit = places && (i + 1) * places <= e->tokens.n_present && (e->by_row[0] || rows == 1);
    return fit ? e->tokens.present + i * places : NULL;
}

static oct_sample_view view_of(const ev_evaluation *e, const ev_subject *s, const oct_batch *b, size_t i)
{
    size_t n = (size_t)e->row[0], at = e->by_row[0] ? i * n : 0;
    return (oct_sample_view){
        .out = s->out[0].v + at,
        .ref = e->subject[0].out[0].v + at,
        .n_out = n,
        .in = e->in_f32 ? e->in_f32 + at : NULL,
        .errors = s->sample,
        .match = s->match,
        .codes = e->kase.codes,
        .n_errors = e->n_out,
        .label = b->labels ? b->labels[i] : -1,
        .next = e->of_tokens && e->tokens.length ? e->tokens.next + i * e->tokens.length : NULL,
        .tokens = e->of_tokens ? e->tokens.length : 0,
        .present = present_of(e, n, b->n == 1 ? 0 : i, b->n),
        .threshold = e->judging.rule->threshold,
        .width = e->width,
        .logits = e->logits,
    };
}

static void add_score(ev_tally *t, double reference, double score)
{
    if (isnan(score))
        return;
    t->sum += score;
    t->n++;
    oct_paired_add(&t->pair, reference, score);
}

void ev_take_scores(ev_evaluation *e)
{
    for (size_t m = 0; m < e->n_metric; m++)
        for (size_t k = 0; k < e->n_subject && e->metric[m]->score; k++) {
            const size_t at = m * e->n_subject + k;
            e->subject[k].tally[m].weight += e->weight[at];
            add_score(&e->subject[k].tally[m], e->score[at - k], e->score[at]);
        }
}

/* Adds sample i of the batch to the sets of all models. */
static oct_status add_to_sets(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err)
{
    const int64_t rows = oct_batch_rows(e->src, b);
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        for (size_t o = 0; o < e->n_out; o++)
            s->tensor[o].v = s->out[o].v + (e->by_row[o] ? i * s->tensor[o].n : 0);
        const oct_set_view v = { .name = b->names[i],
                                 .index = b->indices[i],
                                 .label = b->labels ? b->labels[i] : -1,
                                 .out = s->tensor,
                                 .ref = e->subject[0].tensor,
                                 .n_out = e->n_out,
                                 .batch = b,
                                 .row = i,
                                 .rows = rows,
                                 .source = e->src,
                                 .inputs = e->inputs };
        const oct_status st = ev_sets_add(e->sets, k, &v, err);
        if (st != OCT_OK) {
            oct_within(err, "%s", e->models[k].name);
            return st;
        }
    }
    return OCT_OK;
}

/* The score of an output of another length than the float model's. It agrees with nothing: left out, it would make a
 * model better. Of errors there is no largest, and the others are told apart by how many there are. */
static double score_apart(const oct_metric *m)
{
    return oct_metric_in_percent(m) && m->larger_is_better ? 0 : NAN;
}

static oct_status score_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err)
{
    int64_t label = b->labels ? b->labels[i] : -1;
    e->unlabelled += label < 0;
    if (e->kase.classes && label >= (int64_t)e->kase.classes) {
        oct_fail(err, OCT_EMALFORMED, "%s: label %lld, but the model has %zu classes (counted from 0)", b->names[i],
                 (long long)label, e->kase.classes);
        oct_hint(err, "labels that count from 1 need 1 subtracted");
        return OCT_EMALFORMED;
    }
    for (size_t k = 0; k < e->n_subject; k++)
        OCT_TRY(ev_outputs_compare(e, &e->subject[k], i, err));
    for (size_t m = 0; m < e->n_metric; m++) {
        if (!e->metric[m]->score)
            continue;
        for (size_t k = 0; k < e->n_subject; k++) {
            oct_sample_view v = view_of(e, &e->subject[k], b, i);
            v.k = e->metric[m]->k;
            double score =
                e->subject[k].apart[0] && !e->metric[m]->of_all ? score_apart(e->metric[m]) : e->metric[m]->score(&v);
            if (k == 0 && e->metric[m]->relative &&
                !isnan(score)) /* what equal outputs have, also where its own are NaN */
                score = e->metric[m]->larger_is_better;
            e->score[m * e->n_subject + k] = score;
            e->weight[m * e->n_subject + k] = e->metric[m]->weight && !isnan(score) ? e->metric[m]->weight(&v) : 0;
        }
    }
    if (ev_sets_wanted(e->sets))
        OCT_TRY(add_to_sets(e, b, i, err));
    if (e->part)
        return ev_part_sample(e, b, i, err);
    ev_take_scores(e);
    return OCT_OK;
}

/* Finds the tokens that logits should predict, if a metric needs them. */
static oct_status take_tokens(ev_evaluation *e, const oct_batch *b, const oct_operand *out, oct_err *err)
{
    OCT_TRY(oct_tokens_find_present(&e->tokens, e->inputs, b, out->rank, out->dims, err));
    if (!e->of_tokens)
        return OCT_OK;
    OCT_TRY(oct_tokens_take(&e->tokens, e->models[0].graph, e->inputs, b, out->rank, out->dims, e->need_tokens, err));
    if (!e->need_tokens || (e->tokens.length && (e->by_row[0] || b->n == 1)))
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE,
             "perplexity is for token models, and the first output does not have logits for such inputs");
    oct_hint(err, "it takes logits [N, L, V] and an input of token ids [N, L], int64 or int32");
    return OCT_EUSAGE;
}

/* Keeps the first sample, for timing. */
static oct_status keep_first(ev_evaluation *e, const oct_batch *b, int64_t rows, oct_err *err)
{
    bool cut = rows > 1 && e->fixed_batch <= 1;
    e->first_rows = rows > 1 && !cut ? rows : 1;
    for (size_t i = 0; i < e->n_inputs; i++) {
        const oct_array *x = &b->tensors[i];
        int64_t dims[OCT_ARRAY_RANK] = { 0 };
        memcpy(dims, x->dims, (size_t)x->rank * sizeof dims[0]);
        if (cut && x->rank && dims[0] == rows)
            dims[0] = 1;
        OCT_TRY(oct_array_create(&e->first[i], x->dtype, x->rank, dims, err));
        memcpy(e->first[i].data, x->data, e->first[i].bytes);
    }
    return OCT_OK;
}

typedef struct first_plans {
    ev_evaluation *e;
    const oct_batch *b;
    bool kept; /* the reference need not run */
} first_plans;

/* A failure here is not reported, because it occurs again when the model runs. */
static void make_first(void *arg, size_t begin, size_t end, size_t thread)
{
    const first_plans *f = arg;
    for (size_t k = begin; k < end; k++) {
        oct_err ignored = OCT_ERR_INIT;
        oct_plan *p;
        if (f->e->subject[k].engine.here && !(f->kept && k == 0))
            (void)oct_runner_plan(f->e->subject[k].engine.here, f->b->tensors, &p, &ignored);
    }
}

/* Takes times of runs in which no model made a plan. When there are enough, further runs need not use a single
 * thread. */
static void take_times(ev_evaluation *e)
{
    const size_t least = (size_t)(e->o->latency_runs > 0 ? e->o->latency_runs : EV_LEAST_RUNS);
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        s->seconds[s->n_seconds++] = s->last;
        e->seconds += s->last;
    }
    e->timed = e->subject[0].n_seconds == EV_MOST_RUNS ||
               (e->subject[0].n_seconds >= least && e->seconds >= e->o->latency_seconds);
    if (e->timed)
        oct_pool_alone(e->o->pool, false);
}

/* Whether rows of v[n] are logits: they are not probabilities with sum 1. */
static bool are_logits(const float *v, size_t n, size_t width)
{
    for (size_t at = 0; width && at + width <= n; at += width) {
        double sum = 0;
        for (size_t i = 0; i < width; i++) {
            if (!(v[at + i] >= 0 && v[at + i] <= 1.001f))
                return true;
            sum += v[at + i];
        }
        if (width > 1 && fabs(sum - 1) > 1e-3)
            return true;
    }
    return false;
}

/* Which distributions the first output has: over its classes, over those of each token, or over two classes given by
 * one number. */
static void decide_distributions(ev_evaluation *e)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const oct_decode_scores as = e->judging.rule->scores;
    int64_t last;
    (void)wide_dims(t, &last);
    e->width = e->kase.single ? 1 : e->kase.list || e->kase.positions ? (size_t)last : 0;
    e->logits = as == OCT_SCORES_AUTO ? are_logits(e->subject[0].out[0].v, (size_t)e->row[0], e->width)
                                      : as == OCT_SCORES_LOGITS;
}

/* Whether the first output is a Softmax or the like over its last dimension. */
static bool ends_in_competition(const oct_graph *g)
{
    const oct_value *v = &g->value[g->output[0]];
    const oct_op *op = v->producer >= 0 ? oct_op_of(g, v->producer) : NULL;
    const int64_t axis = op && op->competes ? oct_node_int(&g->node[v->producer], "axis", -1) : 0;
    return op && op->competes && (axis == -1 || axis == v->shape.rank - 1);
}

/* Infers from the first batch of the reference what the outputs mean. */
static void decide_case(ev_evaluation *e, const oct_operand *out, int64_t rows)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const bool scores = e->form[0] == OCT_HOLDS_NUMBERS ||
                        (e->form[0] == OCT_HOLDS_CODES && oct_dtype_is_real(out->dtype)); /* float codes: Hardmax */
    int64_t last;
    const int wide = wide_dims(t, &last);
    oct_metric_case *c = &e->kase;
    *c = (oct_metric_case){ .labels = e->labels,
                            .names = out->dtype == OCT_STRING,
                            .single = e->row[0] == 1 && (e->by_row[0] || rows == 0),
                            .reconstruction = e->in_f32 != NULL,
                            .compared = e->n_subject > 1 || e->o->only_float,
                            .set = oct_judging_kind(&e->judging),
                            .truth = e->judging.truth != NULL,
                            .masks = e->judging.rule->box.prototypes.given,
                            .keypoints = e->judging.rule->box.keypoints.given };
    const oct_truth_sequence *first =
        c->truth && c->set == OCT_SET_SEQUENCES ? oct_truth_sequence_of(e->judging.truth, 0) : NULL;
    c->texts = first && first->text;
    c->tags = e->judging.rule->n_tags > 0;
    c->list = scores && wide == 1 && (e->by_row[0] || rows == 0);
    c->classes = c->list && out->rank >= 2 ? (size_t)last : 0;
    c->positions =
        e->form[0] == OCT_HOLDS_NUMBERS && wide == 2 && t->dims[t->rank - 1] > 1 && (e->by_row[0] || rows == 0)
            ? t->n / (size_t)last
            : 0;
    c->competes = ends_in_competition(e->models[0].graph);
    c->codes = e->form[0] == OCT_HOLDS_CODES && !scores;
    c->numbers = oct_output_is_numbers(e->form[0]);
    for (size_t i = 0; i < e->n_out; i++)
        *(oct_output_is_numbers(e->form[i]) ? &c->any_numbers : &c->any_codes) = true;
    e->judging.classes = c->classes;
    e->judging.labels = e->labels;
    e->judging.compared = c->compared;
    decide_distributions(e);
}

oct_status ev_run_models(ev_evaluation *e, const oct_batch *b, int64_t rows, oct_err *err)
{
    e->most_rows = rows > e->most_rows ? rows : e->most_rows;
    bool steady = true;
    if (!e->decided) {
        oct_pool_for(e->o->pool, e->n_subject, 1, make_first, &(first_plans){ e, b, kept_of(e, b, rows) != NULL });
        oct_pool_alone(e->o->pool, e->o->time_samples);
    }
    for (size_t k = 0; k < e->n_subject; k++) {
        oct_status s = run_subject(e, k, b, rows, &steady, err);
        if (s != OCT_OK) {
            oct_batch_within(b, err);
            oct_within(err, "%s", e->models[k].name);
            if (k && s == OCT_EMALFORMED)
                oct_hint(
                    err,
                    "models are compared on the samples that the first one takes: the others' inputs must be of the same shapes");
            return s;
        }
    }
    if (steady && !e->timed && e->o->time_samples)
        take_times(e);
    const oct_operand *out = &e->reference[0];
    OCT_TRY(take_input(e, b, out, err));
    if (!e->decided) {
        decide_case(e, out, rows);
        OCT_TRY(decide_metrics(e, err));
        OCT_TRY(keep_first(e, b, rows, err));
        e->decided = true;
        if (e->part)
            OCT_TRY(ev_part_begin(e, rows, err));
    }
    return OCT_OK;
}

/* The samples of the batch on which layers are compared. */
static oct_status feed_layers(ev_evaluation *e, const oct_batch *b, int64_t rows, oct_err *err)
{
    const int64_t want = e->o->layer_samples;
    size_t n = 0;
    while (n < b->n && (want < 0 || b->places[n] < want))
        n++;
    bool any = e->layers != NULL;
    for (size_t k = 0; k < e->n_subject && n; k++)
        if (e->subject[k].differences) {
            OCT_TRY(oct_twin_differences_add(e->subject[k].differences, e->arrays[k], (int64_t)n, err));
            any = true;
        }
    if (e->layers && n)
        OCT_TRY(ev_layers_feed(e->layers, e->arrays, rows, n, err));
    e->layer_samples += any ? (int64_t)n : 0;
    return OCT_OK;
}

static oct_status run_batch(ev_evaluation *e, const oct_batch *b, oct_err *err)
{
    const int64_t rows = oct_batch_rows(e->src, b);
    e->labels |= oct_source_has_labels(e->src);
    OCT_TRY(ev_run_models(e, b, rows, err));
    OCT_TRY(take_tokens(e, b, &e->reference[0], err));
    for (size_t i = 0; i < b->n; i++)
        OCT_TRY(score_sample(e, b, i, err));
    return feed_layers(e, b, rows, err);
}

static oct_status run_samples(ev_evaluation *e, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status s;
    const int64_t total = oct_source_count(e->src);
    while ((s = oct_source_next(e->src, e->o->batch ? e->o->batch : 1, &b, err)) == OCT_OK && b.n) {
        if ((s = run_batch(e, &b, err)) != OCT_OK)
            break;
        if (e->o->progress)
            e->o->progress(e->o->progress_arg, "comparing", oct_source_given(e->src), total > 0 ? total : 0);
    }
    oct_batch_free(&b);
    e->given = oct_source_given(e->src);
    e->bad = oct_source_bad_count(e->src);
    if (s == OCT_OK && !e->decided && !e->part)
        return oct_source_none(e->src, err);
    return s;
}

/* Runs the command for model k, which prints as many numbers as for the first. */
static oct_status numbers_of(ev_evaluation *e, size_t k, double **values, size_t *n, oct_err *err)
{
    size_t count;
    const oct_status s = oct_command_finish(e->subject[k].command, e->o->command, e->arena, values, &count, err);
    if (s != OCT_OK) {
        oct_within(err, "%s", e->models[k].name);
        return s;
    }
    if (k && count != *n)
        return oct_fail(err, OCT_EMALFORMED, "%s: the command printed %zu numbers for %s, %zu for %s",
                        e->o->command->command, *n, e->models[0].name, count, e->models[k].name);
    *n = count;
    return OCT_OK;
}

/* A sample that the command leaves out for one model alone is a loss, whichever that is: else a model would become
 * better by failing. */
static void add_pair(ev_tally *t, double reference, double score, bool proportion)
{
    if (isnan(reference) == isnan(score)) {
        add_score(t, reference, score);
        return;
    }
    t->lost++;
    if (isnan(score) && proportion)
        add_score(t, reference, 0);
    else if (proportion)
        oct_paired_add(&t->pair, 1, 0);
}

/* Runs the command for each model. Its metric is the first one. */
static oct_status run_command(ev_evaluation *e, oct_err *err)
{
    size_t n = 0;
    bool proportion = true;
    double **values = oct_arena_calloc(e->arena, e->n_subject, sizeof *values);
    if (!values)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++) {
        OCT_TRY(numbers_of(e, k, &values[k], &n, err));
        for (size_t i = 0; i < n; i++)
            proportion &= values[k][i] == 0 || values[k][i] == 1 || isnan(values[k][i]);
    }
    for (size_t k = 0; k < e->n_subject; k++)
        for (size_t i = 0; i < n; i++)
            add_pair(&e->subject[k].tally[0], values[0][i], values[k][i], proportion);
    e->one_number = n == 1;
    e->metric[0] = oct_command_metric(e->o->command, proportion && !e->one_number);
    return OCT_OK;
}

/* ---- results ---- */

static double risen(double more, const oct_eval_score *c)
{
    return c->reference * oct_expm1(more / c->per_sample);
}

/* Turns the interval of the mean difference of logarithms into one of a factor on the reference. */
static oct_interval as_factors(const oct_interval *d, const oct_eval_score *c)
{
    return (oct_interval){ risen(d->mean, c), risen(d->lo, c), risen(d->hi, c) };
}

/* Sets the interval of the drop from that of the difference. Shares of which no sample has lost or won anything (the
 * words of a text, for example) tell as little as answers that are right or wrong: a sample that differs may be one in
 * n / 4, and lose all. */
static void set_drop(oct_eval_score *c, const oct_paired *p)
{
    const bool equal = oct_metric_in_percent(c->metric) && p->n > 1 && p->up + p->down == 0 && p->sum == 0;
    const bool counts = c->metric->kind == OCT_METRIC_PROPORTION || equal;
    oct_interval d = counts ? oct_paired_proportion(p) : oct_paired_mean(p);
    if (c->metric->kind == OCT_METRIC_TOKENS)
        d = as_factors(&d, c);
    ev_set_drop(c, &d, c->metric->larger_is_better);
    if (!isnan(d.lo))
        c->method = counts ? "Tango's score interval" : oct_paired_mean_method(p->n);
}

oct_interval oct_eval_change(const oct_eval_score *s)
{
    if (!s->metric->larger_is_better || s->metric->lost)
        return (oct_interval){ s->drop, s->lo, s->hi };
    return (oct_interval){ 0 - s->drop, 0 - s->hi, 0 - s->lo }; /* not -s->drop, which makes -0 of 0 */
}

bool oct_eval_has_few(const oct_eval_score *s)
{
    return s->metric->kind != OCT_METRIC_WHOLE && isnan(s->lo) && !isnan(s->drop) && s->n < OCT_BCA_LEAST;
}

bool oct_eval_lacks_interval(const oct_eval_score *s)
{
    return oct_eval_has_few(s) || (s->metric->kind != OCT_METRIC_WHOLE && isnan(s->lo) && isfinite(s->drop));
}

oct_eval_gate oct_eval_judge(const oct_eval_score *s, const oct_drop_limit *limit)
{
    const oct_interval d = { s->drop, s->lo, s->hi };
    oct_eval_gate g = { .allowed = oct_drop_allowed(limit, s->reference),
                        .missed = oct_drop_exceeds(limit, s->reference, s->drop) };
    g.unsure = oct_interval_holds(&d, g.allowed) || oct_eval_lacks_interval(s);
    if (g.unsure)
        g.samples = oct_interval_samples(&d, s->n, g.allowed);
    return g;
}

static double value_of(const oct_metric *m, const ev_tally *t)
{
    const bool tokens = m->kind == OCT_METRIC_TOKENS;
    const double mean = t->n ? t->sum / (tokens ? t->weight : (double)t->n) : NAN;
    return tokens ? oct_exp(mean) : mean;
}

/* The share of samples that guessing gets right: k of the classes. One value is of two classes. */
static double chance_of(const ev_evaluation *e, const oct_metric *m)
{
    const size_t classes = e->kase.single ? 2 : e->kase.classes;
    return m->k && !m->relative && classes > m->k ? (double)m->k / (double)classes : NAN;
}

bool oct_eval_is_guess(const oct_eval_score *s)
{
    enum { ENOUGH = 20 };
    return s->n >= ENOUGH && s->value <= s->chance + 2 * sqrt(s->chance * (1 - s->chance) / (double)s->n);
}

static oct_eval_score score_of(const ev_evaluation *e, size_t k, size_t m)
{
    const oct_metric *metric = e->metric[m];
    const ev_subject *s = &e->subject[k];
    oct_eval_score c = { .metric = metric,
                         .value = NAN,
                         .reference = NAN,
                         .drop = NAN,
                         .lo = NAN,
                         .hi = NAN,
                         .chance = chance_of(e, metric) };
    if ((k == 0 && metric->relative) || metric->kind == OCT_METRIC_SET)
        return c;
    if (metric->whole) {
        c.value = metric->whole(s->total, e->n_out);
        c.drop = metric->loss(s->total, e->n_out);
        c.n = (uint64_t)e->given;
        return c;
    }
    const ev_tally *t = &s->tally[m], *ref = &e->subject[0].tally[m];
    c.one_number = e->one_number && m == 0;
    c.n = c.one_number ? (uint64_t)e->given : t->n;
    c.lost = t->lost;
    c.value = value_of(metric, t);
    if (k == 0 || !ref->n)
        return c;
    c.reference = value_of(metric, ref);
    c.per_sample = t->weight / (double)t->n;
    set_drop(&c, &t->pair);
    if (t->lost && metric->kind != OCT_METRIC_PROPORTION) { /* nothing says what the lost ones are worth */
        c.drop = INFINITY;
        c.lo = c.hi = NAN;
        c.method = NULL;
        c.within_noise = false;
    }
    return c;
}

static double agreement_of(const ev_evaluation *e, size_t k)
{
    for (size_t m = 0; m < e->n_metric && k > 0; m++)
        if (strcmp(e->metric[m]->name, "agreement") == 0 && e->subject[k].tally[m].n)
            return e->subject[k].tally[m].sum / (double)e->subject[k].tally[m].n;
    return NAN;
}

/* What the runtime of a twin computes otherwise. */
static oct_status fill_device(const ev_evaluation *e, const ev_subject *s, oct_arena *a, oct_eval_differences *to,
                              oct_err *err)
{
    const oct_graph *g = s->model->graph;
    const oct_twin_difference *f;
    while (oct_twin_differences_at(s->differences, to->layers))
        to->layers++;
    to->runtime = oct_arena_strdup(a, s->model->twin->runtime);
    to->layer = oct_arena_calloc(a, to->layers + 1, sizeof *to->layer);
    to->output = oct_arena_calloc(a, e->n_out + 1, sizeof *to->output);
    if (!to->runtime || !to->layer || !to->output)
        return oct_nomem(err);
    for (size_t i = 0; (f = oct_twin_differences_at(s->differences, i)); i++) {
        const int v = oct_graph_find(g, f->value);
        const oct_node *node = v >= 0 ? ev_computing_node(g, v) : NULL;
        if (!f->own)
            continue;
        oct_eval_difference *x = &to->layer[to->n++];
        *x = (oct_eval_difference){ .op = f->op,
                                    .values = f->values,
                                    .own = f->own,
                                    .all = f->all,
                                    .own_most = f->own_most,
                                    .all_most = f->all_most };
        if (!(x->name = oct_arena_strdup(a, node && node->name[0] ? node->name : f->value)))
            return oct_nomem(err);
    }
    for (size_t i = 0; i < e->n_out; i++) {
        const oct_twin_output_difference *o = oct_twin_differences_output(s->differences, s->from[i]);
        to->output[i] =
            (oct_eval_output_difference){ .name = e->models[0].graph->value[e->models[0].graph->output[i]].name,
                                          .values = o->values,
                                          .differ = o->differ,
                                          .most = o->most };
    }
    return OCT_OK;
}

static oct_status fill_model(const ev_evaluation *e, size_t k, oct_eval_result *r, oct_err *err)
{
    const ev_subject *s = &e->subject[k];
    oct_eval_model_result *m = &r->models[k];
    const char *runner = oct_engine_name(&s->engine);
    m->name = oct_arena_strdup(r->arena, s->model->name);
    if (runner && !(m->runner = oct_arena_strdup(r->arena, runner)))
        return oct_nomem(err);
    m->size_bytes = s->model->size_bytes;
    m->batch_scales = e->most_rows > 1 && oct_op_shares_scales(s->model->graph);
    m->scores = oct_arena_calloc(r->arena, e->n_metric + 1, sizeof *m->scores);
    m->outputs = oct_arena_calloc(r->arena, e->n_out + 1, sizeof *m->outputs);
    if (!m->name || !m->scores || !m->outputs)
        return oct_nomem(err);
    for (size_t i = 0; i < e->n_metric; i++) {
        m->scores[i] = score_of(e, k, i);
        if (e->metric[i]->kind == OCT_METRIC_SET && (k > 0 || !e->metric[i]->relative))
            OCT_TRY(ev_sets_score(e->sets, k, e->o->pool, &m->scores[i], err));
    }
    if (e->o->per_class)
        OCT_TRY(ev_sets_classes(e->sets, k, r->arena, &m->classes, err));
    m->n_fit = s->n_fit;
    m->fit = oct_arena_alloc(r->arena, (s->n_fit + 1) * sizeof *m->fit);
    if (!m->fit)
        return oct_nomem(err);
    memcpy(m->fit, s->fit, s->n_fit * sizeof *m->fit);
    m->agreement = agreement_of(e, k);
    m->sqnr_db = oct_metric_sqnr(s->total, e->n_out);
    for (size_t i = 0; i < e->n_out; i++) {
        ev_output_result(e, s, i, &m->outputs[i]);
        m->broken |= m->outputs[i].broken;
    }
    if (s->differences && e->layer_samples)
        OCT_TRY(fill_device(e, s, r->arena, &m->device, err));
    if (e->layers && k > 0)
        OCT_TRY(ev_layers_result(e->layers, k, r->arena, &m->layers, &m->n_layers, err));
    return OCT_OK;
}

static oct_status time_models(ev_evaluation *e, oct_eval_result *r, oct_err *err)
{
    const oct_eval_options *o = e->o;
    if (o->kept && !(o->latency_seconds > 0))
        return OCT_OK;
    ev_timed *t = oct_arena_calloc(e->arena, e->n_subject, sizeof *t);
    if (!t)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        const bool enough =
            o->time_samples && o->latency_seconds > 0 && s->n_seconds > 0 && s->n_seconds >= (size_t)o->latency_runs;
        t[k] = (ev_timed){ s->model->name, &s->engine, s->seconds, enough ? s->n_seconds : 0 };
    }
    oct_pool_alone(o->pool, o->time_samples);
    OCT_TRY(ev_time_models(t, e->n_subject, e->first, e->first_rows, o, r, err));
    return o->profile ? ev_profile_models(t, e->n_subject, e->first, e->models, o->pool, r, err) : OCT_OK;
}

static oct_status fill_result(ev_evaluation *e, oct_eval_result *r, oct_err *err)
{
    r->n_models = e->n_subject;
    r->n_scores = e->n_metric;
    r->n_outputs = e->n_out;
    r->samples = e->given;
    r->unlabelled = e->labels ? e->unlabelled : 0;
    r->labels_too_late = e->labels && !e->kase.labels;
    r->bad_samples = e->bad;
    r->layer_samples = e->layer_samples;
    r->batch = e->fixed_batch > 1 ? (size_t)e->fixed_batch : e->o->batch ? e->o->batch : 1;
    r->threads = e->o->time_samples ? 1 : oct_pool_threads(e->o->pool);
    if (!(r->models = oct_arena_calloc(r->arena, r->n_models, sizeof *r->models)))
        return oct_nomem(err);
    OCT_TRY(ev_sets_finish(e->sets, err));
    for (size_t k = 0; k < e->n_subject; k++)
        for (size_t i = 0; i < e->n_out; i++)
            e->subject[k].total[i] = oct_error_sum_value(&e->subject[k].sum[i]);
    for (size_t k = 0; k < e->n_subject; k++)
        OCT_TRY(fill_model(e, k, r, err));
    return time_models(e, r, err);
}

static void open_judging(ev_evaluation *e)
{
    oct_decode_defaults(&e->rule);
    e->judging = (oct_judging){ .rule = e->o->rule ? e->o->rule : &e->rule, .truth = e->o->truth };
    e->fixed_batch = e->src ? oct_source_fixed_batch(e->src) : 0;
}

/* The samples come from e->src, or from parts if there is none. */
static oct_status evaluate(ev_evaluation *e, const oct_eval_model *models, size_t n_models, oct_parts *parts,
                           oct_eval_result **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_eval_result *r = a ? oct_arena_calloc(a, 1, sizeof *r) : NULL;
    const oct_eval_options *o = e->o;
    e->arena = oct_arena_create();
    oct_status s = r && e->arena ? OCT_OK : oct_nomem(err);
    const double began = oct_now();
    if (r) {
        r->arena = a;
        oct_environment_read(&r->environment); /* before this run itself causes load */
        e->kept = a;
    }
    open_judging(e);
    if (s == OCT_OK)
        s = setup(e, models, n_models, err);
    if (s == OCT_OK)
        s = e->src ? run_samples(e, err) : ev_join_parts(e, parts, err);
    if (s == OCT_OK && o->command)
        s = run_command(e, err);
    if (s == OCT_OK)
        s = fill_result(e, r, err);
    if (r)
        r->seconds = oct_now() - began;
    teardown(e);
    oct_pool_alone(o->pool, false);
    if (s != OCT_OK) {
        oct_arena_destroy(a);
        return s;
    }
    *out = r;
    return OCT_OK;
}

oct_status oct_eval(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o,
                    oct_eval_result **r, oct_err *err)
{
    ev_evaluation e = { .o = o, .src = src };
    return evaluate(&e, models, n_models, NULL, r, err);
}

oct_status oct_eval_join(const oct_eval_model *models, size_t n_models, oct_parts *parts, const oct_eval_options *o,
                         oct_joined *joined, oct_eval_result **r, oct_err *err)
{
    ev_evaluation e = { .o = o, .joined = joined };
    return evaluate(&e, models, n_models, parts, r, err);
}

oct_status oct_eval_part(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o,
                         oct_part_out *p, int64_t *samples, oct_err *err)
{
    ev_evaluation e = { .o = o, .src = src, .part = p, .arena = oct_arena_create() };
    oct_status s = e.arena ? OCT_OK : oct_nomem(err);
    open_judging(&e);
    if (s == OCT_OK)
        s = setup(&e, models, n_models, err);
    if (s == OCT_OK)
        s = run_samples(&e, err);
    *samples = e.given;
    if (s == OCT_OK)
        s = ev_part_end(&e, err);
    else
        oct_part_abort(p);
    teardown(&e);
    oct_pool_alone(o->pool, false);
    return s;
}

void oct_eval_free(oct_eval_result *r)
{
    if (r)
        oct_arena_destroy(r->arena);
}
