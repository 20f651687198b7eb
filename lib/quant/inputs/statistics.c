/* Statistics of the values that a conversion asks for, from samples or a table. */
#include "quant/convert/convert_int.h"

#include "observers/exercise.h"
#include "quant/inputs/norm_draw.h"
#include "runtime/runnable.h"

static void say_match(oct_conversion *c)
{
    const oct_encodings_match *m = &c->match;
    oct_conversion_say(c, 0, "%s: %zu ranges (%s)", c->table, m->taken, oct_encoding_form_summary(m->form));
    if (m->weights)
        oct_conversion_say(c, 0, "%zu entries for weights are ignored: weights are rounded from the model's own",
                           m->weights);
    if (m->others) {
        char text[400];
        oct_encodings_say_others(m, text, sizeof text);
        oct_conversion_say(c, m->near[0] ? 0 : 1, "%s", text);
    }
}

oct_status oct_conversion_read_table(oct_conversion *c, const char *path, oct_err *err)
{
    c->table = path;
    OCT_TRY(oct_encodings_load(path, c->m->graph, &c->calib, &c->match, err));
    if (c->match.form) {
        say_match(c);
        return OCT_OK;
    }
    const uint64_t hash = oct_model_hash(c->m);
    if (c->calib->model_hash == hash)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: made from another model: '%s' with hash %016llx, but %s has %016llx", path,
             c->calib->model, (unsigned long long)c->calib->model_hash, c->o.name, (unsigned long long)hash);
    oct_hint(err, "make the table from this model: qcalib %s --data SPEC -o %s", c->o.name, path);
    return OCT_EUSAGE;
}

/* Whether samples determine how weights in blocks are rounded. */
static bool rounds_blocks(const oct_conversion *c)
{
    bool any = false;
    for (size_t i = 0; i < c->n_methods; i++)
        any |= c->o.methods.on[i] && c->methods[i].method->of_blocks;
    return any && (oct_qjob_has_blocks(c->job) || oct_qjob_has_expert_blocks(c->job)) && !oct_no_running(c);
}

/* Whether samples determine which layers quantize their inputs when they run. */
static bool chooses_dynamic(const oct_conversion *c)
{
    bool any = false;
    for (size_t i = 0; i < c->n_methods; i++)
        any |= c->o.methods.on[i] && c->methods[i].method->of_dynamic;
    return any && oct_qjob_has_dynamic(c->job) && !oct_no_running(c);
}

oct_status oct_statistics_begin(oct_conversion *c, oct_err *err)
{
    size_t n;
    oct_qjob_values(c->job, NULL, &n);
    if (!(c->calib = oct_calib_create()))
        return oct_nomem(err);
    if (*oct_source_preprocess_words(c->src))
        oct_conversion_say(c, *oct_source_preprocess(c->src) ? 0 : 1, "preprocessing: %s",
                           oct_source_preprocess_words(c->src));
    if (n == 0 && !c->o.synthetic && !c->was_quantized && oct_source_is_once(c->src))
        oct_conversion_say(c, OCT_NOTE_WARNING,
                           "the samples are not used, as they can be read once only: --samples N keeps N of them");
    oct_conversion_keep_aside(c, n > 0 || rounds_blocks(c) || chooses_dynamic(c));
    c->gathered = n == 0;
    return OCT_OK;
}

/* Whether a sample tells a size that is not assumed anyway: a first dimension that is open is taken for the batch. */
static oct_status leaves_open(const oct_conversion *c, bool *open, oct_err *err)
{
    const oct_graph *g = c->m->graph;
    bool batch = false, needs = false;
    *open = false;
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_shape *s = &g->value[g->input[i]].shape;
        *open |= s->rank < 0;
        batch |= s->rank > 0 && s->d[0].n < 0;
        for (int d = 1; d < s->rank; d++)
            *open |= s->d[d].n < 0;
    }
    if (batch && !*open)
        OCT_TRY(oct_qjob_needs_batch(c->job, &needs, err));
    *open |= needs;
    return OCT_OK;
}

static oct_status take_shapes(oct_conversion *c, const oct_batch *b, oct_err *err)
{
    oct_shape *seen = oct_arena_calloc(c->arena, b->n_tensors + 1, sizeof *seen);
    if (!seen)
        return oct_nomem(err);
    for (size_t i = 0; i < b->n_tensors; i++) {
        oct_dim *d = oct_arena_calloc(c->arena, (size_t)b->tensors[i].rank + 1, sizeof *d);
        if (!d)
            return oct_nomem(err);
        for (int k = 0; k < b->tensors[i].rank; k++)
            d[k].n = b->tensors[i].dims[k];
        seen[i] = (oct_shape){ b->tensors[i].rank, d };
    }
    c->seen = seen;
    c->n_seen = b->n_tensors;
    return OCT_OK;
}

oct_status oct_statistics_see_shapes(oct_conversion *c, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_err why = OCT_ERR_INIT; /* what fails will fail where it counts */
    size_t n;
    bool open;
    oct_qjob_values(c->job, NULL, &n);
    if (c->seen || (n == 0 && c->was_quantized) || oct_source_is_once(c->src))
        return OCT_OK;
    OCT_TRY(leaves_open(c, &open, err));
    if (!open)
        return OCT_OK;
    OCT_TRY(oct_source_pick(c->src, &(oct_pick){ .most = 1 }, err));
    oct_status s = oct_source_next(c->src, 1, &b, &why) == OCT_OK && b.n ? take_shapes(c, &b, err) : OCT_OK;
    oct_batch_free(&b);
    if (s == OCT_OK)
        s = oct_source_pick(c->src, &(oct_pick){ 0 }, err);
    return s == OCT_OK && c->seen ? oct_conversion_reopen(c, err) : s;
}

static void warn_of(oct_conversion *c, oct_buf *b)
{
    if (b->len)
        oct_conversion_say(c, OCT_NOTE_WARNING, "%s", oct_buf_str(b));
    oct_buf_free(b);
}

static void warn_unexercised(oct_conversion *c)
{
    const oct_exercise x = oct_calib_exercise(c->calib);
    oct_buf b = OCT_BUF_INIT;
    oct_exercise_tell(&x, &b);
    warn_of(c, &b);
}

void oct_statistics_warn_few(oct_conversion *c)
{
    oct_buf b = OCT_BUF_INIT;
    size_t n;
    oct_qjob_values(c->job, NULL, &n);
    if (n)
        oct_exercise_few(c->calib, &b);
    warn_of(c, &b);
}

oct_status oct_statistics_few(const oct_conversion *c, const oct_few *what, oct_calib **into, oct_err *err)
{
    const int64_t fit = 1200000000 / oct_sample_macs(c->m->graph), n = fit < 4 ? 4 : fit > 16 ? 16 : fit;
    const oct_pick pick = what->all ? (oct_pick){ .most = what->all } : oct_pick_half(c, 0, n);
    const oct_calibrate_opts o = { .values = what->values,
                                   .axes = what->axes,
                                   .n = what->n,
                                   .moments_only = what->channels,
                                   .all_positions = what->channels,
                                   .part = true,
                                   .threads = c->o.job.threads };
    if (!(*into = oct_calib_create()))
        return oct_nomem(err);
    OCT_TRY(oct_source_pick(c->src, &pick, err));
    return oct_calibrate(c->m->graph, c->src, &o, *into, err);
}

static void warn_incomplete(oct_conversion *c)
{
    size_t n;
    oct_qjob_values(c->job, NULL, &n);
    if (c->calib->n_tensors < n)
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "%zu of %zu tensors could not be calibrated: they depend on an operator that is not known here",
            n - c->calib->n_tensors, n);
    warn_unexercised(c);
}

/* Values that one half never showed get the statistics of both. */
static oct_status complete_half(const oct_conversion *c, oct_calib *half, oct_err *err)
{
    for (size_t i = 0; i < c->calib->n_tensors; i++) {
        oct_calib_tensor *t;
        OCT_TRY(oct_calib_add(half, c->calib->tensors[i]->name, &t, err));
        if (oct_stats_finite(&t->stats) == 0)
            OCT_TRY(oct_stats_merge(&t->stats, &c->calib->tensors[i]->stats, err));
    }
    return OCT_OK;
}

/* Whether ranges will be judged, and there are at least two samples, so that they can be judged on other samples than
 * those that they come from. */
static bool wants_halves(const oct_conversion *c)
{
    const int64_t n = oct_source_count(c->src);
    return oct_conversion_may_run(c, OCT_STEP_RANGES) && !oct_no_measuring(c) && !c->o.whole && n > 1;
}

static oct_status gather_halves(oct_conversion *c, oct_calibrate_opts *o, oct_err *err)
{
    o->total = oct_source_count(c->src);
    for (int h = 0; h < 2; h++) {
        const oct_pick pick = oct_pick_half(c, h, 0);
        if (!(c->half[h] = oct_calib_create()))
            return oct_nomem(err);
        OCT_TRY(oct_source_pick(c->src, &pick, err));
        o->before = (int64_t)c->calib->samples;
        OCT_TRY(oct_calibrate(c->m->graph, c->src, o, c->half[h], err));
        OCT_TRY(oct_calib_add_statistics(c->calib, c->half[h], err));
    }
    for (int h = 0; h < 2; h++)
        OCT_TRY(complete_half(c, c->half[h], err));
    return oct_source_pick(c->src, &(oct_pick){ 0 }, err);
}

/* Replaces statistics of generated samples by those that follow from the moments in the model. */
static oct_status draw_remembered(oct_conversion *c, const oct_calibrate_opts *o, oct_err *err)
{
    const oct_norm_draw_opts what = { .values = o->values, .axes = o->axes, .n = o->n, .threads = o->threads };
    oct_calib *drawn = oct_calib_create();
    oct_status s = drawn ? oct_norm_draw(c->m->graph, c->target, c->n_target, &what, drawn, err) : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < drawn->n_tensors; i++) {
        oct_calib_tensor *from = drawn->tensors[i], *to;
        s = oct_calib_add(c->calib, from->name, &to, err);
        if (s != OCT_OK)
            break;
        const oct_calib_tensor made = *to;
        to->stats = from->stats;
        to->chan = from->chan;
        from->stats = made.stats;
        from->chan = made.chan;
    }
    if (s == OCT_OK)
        oct_conversion_say(c, 0, "the ranges of %zu of %zu tensors follow from BatchNormalization", drawn->n_tensors,
                           o->n);
    oct_calib_destroy(drawn);
    return s;
}

oct_status oct_statistics_gather(oct_conversion *c, oct_err *err)
{
    oct_calibrate_opts o = { .threads = c->o.job.threads,
                             .progress = c->o.listener.progress,
                             .progress_arg = c->o.listener.arg };
    o.values = oct_qjob_values(c->job, &o.axes, &o.n);
    OCT_TRY(wants_halves(c) ? gather_halves(c, &o, err)
                            : oct_calibrate(c->like ? c->like : c->m->graph, c->src, &o, c->calib, err));
    c->gathered = true;
    if (c->o.listener.taken)
        c->o.listener.taken(c->o.listener.arg, c->src);
    if (c->o.synthetic)
        OCT_TRY(draw_remembered(c, &o, err));
    else
        oct_statistics_warn_few(c);
    warn_incomplete(c);
    return OCT_OK;
}

/* A table that was made for integers may lack values that 16-bit floats must represent. */
void oct_statistics_warn(oct_conversion *c)
{
    size_t n, missing = 0;
    const char *const *names = oct_qjob_values(c->job, NULL, &n);
    for (size_t i = 0; i < n; i++)
        missing += oct_calib_find(c->calib, names[i]) == NULL;
    if (missing)
        oct_conversion_say(c, OCT_NOTE_WARNING,
                           "%s has no range for %zu of %zu tensors: whether float16 holds them is not known", c->table,
                           missing, n);
}
