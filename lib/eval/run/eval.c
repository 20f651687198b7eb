/* Evaluates in one pass over the samples: all models run each batch, and scores and errors are gathered sample by
 * sample. */
#include "eval/run/eval_int.h"

#include "base/io.h"

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

static bool same_shape(const oct_array *a, const oct_operand *t)
{
    return a->rank == t->rank && memcmp(a->dims, t->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
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
        ev_decide_case(e, out, rows);
        OCT_TRY(ev_decide_metrics(e, err));
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
        OCT_TRY(ev_score_sample(e, b, i, err));
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

/* ---- evaluations ---- */

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
        s = ev_run_metric_command(e, err);
    if (s == OCT_OK)
        s = ev_fill_result(e, r, err);
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
