/* Compares an earlier report with the present measurements. */
#include "eval/gates/baseline.h"

#include "base/io.h"
#include "base/json_tree.h"
#include "eval/report/report.h"

#include <math.h>
#include <string.h>

static const oct_gate the_gate = { .kind = OCT_GATE_BASELINE };

/* ---- reading ---- */

static oct_status read_bytes(oct_tree *model, const char *member, const char *label, double *v, oct_err *err)
{
    const oct_tree *t = oct_tree_member(model, member);
    if (oct_tree_number(t, v) && *v >= 0 && isfinite(*v))
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "%s: a model has no %s that is a number of bytes", label, member);
}

static double read_db(oct_tree *model)
{
    double db;
    bool exact = false;
    if (oct_tree_number(oct_tree_member(model, "output_sqnr_db"), &db))
        return db;
    return oct_tree_bool(oct_tree_member(model, "exact"), &exact) && exact ? INFINITY : NAN;
}

static oct_status read_drops(oct_tree *model, oct_arena *arena, oct_baseline_model *m, oct_err *err)
{
    oct_tree *drops = oct_tree_member(model, "drop"), *member;
    const char *name;
    double v;
    if (!(m->drops = oct_arena_calloc(arena, oct_tree_count(drops) + 1, sizeof *m->drops)))
        return oct_nomem(err);
    for (void *at = NULL; oct_tree_is_object(drops) && oct_tree_next(drops, &at, &name, &member);)
        if (oct_tree_number(oct_tree_member(member, "value"), &v)) {
            oct_baseline_drop *d = &m->drops[m->n_drops++];
            *d = (oct_baseline_drop){ oct_arena_strdup(arena, name), v };
            if (!d->metric)
                return oct_nomem(err);
        }
    return OCT_OK;
}

static oct_status read_model(oct_tree *model, oct_arena *arena, const char *label, oct_baseline_model *m, oct_err *err)
{
    const char *path = oct_tree_text(oct_tree_member(model, "path"));
    if (!path)
        return oct_fail(err, OCT_EMALFORMED, "%s: a model has no path", label);
    if (!(m->name = oct_arena_strdup(arena, path)))
        return oct_nomem(err);
    OCT_TRY(read_bytes(model, "size_bytes", label, &m->size_bytes, err));
    m->peak_bytes = NAN;
    if (!oct_tree_text(oct_tree_member(model, "runner"))) /* another runtime does not report its memory */
        OCT_TRY(read_bytes(model, "peak_bytes", label, &m->peak_bytes, err));
    m->sqnr_db = read_db(model);
    return read_drops(model, arena, m, err);
}

static oct_status read_models(oct_tree *root, oct_arena *arena, oct_baseline *b, oct_err *err)
{
    oct_tree *models = oct_tree_member(root, "models");
    const char *schema = oct_tree_text(oct_tree_member(root, "schema"));
    if (!schema || strcmp(schema, OCT_EVAL_SCHEMA) != 0 || !oct_tree_is_list(models)) {
        oct_fail(err, OCT_EMALFORMED, "%s: this is no report of a comparison by this version of qeval", b->label);
        oct_hint(err, "qeval FLOAT QUANT --data ... --json FILE writes one");
        return OCT_EMALFORMED;
    }
    const size_t n = oct_tree_count(models);
    if (n < 2)
        return oct_fail(err, OCT_EMALFORMED, "%s: no quantized model is in this report", b->label);
    if (!(b->models = oct_arena_calloc(arena, n, sizeof *b->models)))
        return oct_nomem(err);
    for (size_t k = 1; k < n; k++)
        OCT_TRY(read_model(oct_tree_at(models, k), arena, b->label, &b->models[b->n_models++], err));
    if (!oct_tree_number(oct_tree_member(root, "samples"), &b->samples))
        b->samples = NAN;
    return OCT_OK;
}

oct_status oct_baseline_read(const char *text, size_t size, const char *label, oct_arena *arena, oct_baseline **out,
                             oct_err *err)
{
    oct_tree *root;
    oct_baseline *b = oct_arena_calloc(arena, 1, sizeof *b);
    if (!b || !(b->label = oct_arena_strdup(arena, label)))
        return oct_nomem(err);
    OCT_TRY(oct_tree_parse(text, size, label, &root, err));
    const oct_status s = read_models(root, arena, b, err);
    oct_tree_free(root);
    if (s == OCT_OK)
        *out = b;
    return s;
}

/* ---- judging ---- */

static const oct_baseline_model *find_model(const oct_baseline *b, const oct_eval_result *r, size_t k)
{
    const char *name = r->models[k].name;
    for (size_t i = 0; i < b->n_models; i++)
        if (strcmp(b->models[i].name, name) == 0)
            return &b->models[i];
    for (size_t i = 0; i < b->n_models; i++)
        if (strcmp(oct_path_base(b->models[i].name), oct_path_base(name)) == 0)
            return &b->models[i];
    return b->n_models == 1 && r->n_models == 2 ? &b->models[0] : NULL;
}

/* A metric that has no value now, and had one, is worse. */
static void judge_drop(oct_gate_result *x, size_t k, const oct_eval_score *s, double before)
{
    const oct_interval now = { s->drop, s->lo, s->hi };
    const oct_drop_limit limit = { before, false };
    *x = (oct_gate_result){ .gate = &the_gate,
                            .model = k,
                            .subject = s->metric->name,
                            .score = s,
                            .estimate = s->drop,
                            .limit = before,
                            .before = before,
                            .lo = s->lo,
                            .hi = s->hi,
                            .method = s->method };
    const bool worse = oct_drop_exceeds(&limit, s->reference, s->drop);
    x->met = !worse || (!isnan(s->lo) && !(s->lo > before));
    x->unsure = worse && x->met;
    x->samples_needed = x->unsure ? oct_interval_samples(&now, s->n, before) : 0;
}

static void judge_value(oct_gate_result *x, size_t k, const char *subject, double now, double before, double limit,
                        bool larger_is_better)
{
    *x = (oct_gate_result){ .gate = &the_gate,
                            .model = k,
                            .subject = subject,
                            .estimate = now,
                            .before = before,
                            .limit = limit,
                            .lo = NAN,
                            .hi = NAN };
    x->met = larger_is_better ? now >= limit : now <= limit;
}

static void judge_model(const oct_baseline_model *b, const oct_eval_result *r, size_t k, oct_gate_result *x, size_t *n)
{
    const oct_eval_model_result *m = &r->models[k];
    for (size_t i = 0; i < r->n_scores; i++) {
        if (m->scores[i].metric->kind == OCT_METRIC_WHOLE)
            continue;
        for (size_t d = 0; d < b->n_drops; d++)
            if (strcmp(b->drops[d].metric, m->scores[i].metric->name) == 0)
                judge_drop(&x[(*n)++], k, &m->scores[i], b->drops[d].drop);
    }
    if (!isnan(b->sqnr_db))
        judge_value(&x[(*n)++], k, "sqnr", m->sqnr_db, b->sqnr_db, b->sqnr_db - OCT_BASELINE_DB, true);
    judge_value(&x[(*n)++], k, "size", (double)m->size_bytes, b->size_bytes, b->size_bytes * (1 + OCT_BASELINE_SHARE),
                false);
    if (!isnan(b->peak_bytes) && !m->runner)
        judge_value(&x[(*n)++], k, "memory", (double)m->peak_bytes, b->peak_bytes,
                    b->peak_bytes * (1 + OCT_BASELINE_SHARE), false);
}

oct_status oct_baseline_judge(const oct_baseline *b, oct_eval_result *r, const oct_gate_result **result, size_t *n,
                              oct_err *err)
{
    size_t count;
    if (!oct_mul_size(r->n_models, r->n_scores + 3, &count) || count > SIZE_MAX - *n)
        return oct_nomem(err);
    oct_gate_result *x = oct_arena_calloc(r->arena, *n + count + 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    if (*n)
        memcpy(x, *result, *n * sizeof *x);
    for (size_t k = 1; k < r->n_models; k++) {
        const oct_baseline_model *was = find_model(b, r, k);
        if (!was) {
            oct_fail(err, OCT_EUSAGE, "%s: no model in it is '%s'", b->label, r->models[k].name);
            oct_hint(err, "models pair by path, then by file name; one in each pair whatever their names are");
            return OCT_EUSAGE;
        }
        judge_model(was, r, k, x, n);
    }
    *result = x;
    return OCT_OK;
}

/* ---- what is not compared ---- */

static bool then_has(const oct_baseline_model *was, const char *metric)
{
    for (size_t d = 0; d < was->n_drops; d++)
        if (strcmp(was->drops[d].metric, metric) == 0)
            return true;
    return false;
}

/* SQNR is compared in any case, and the largest error in none. */
static bool is_whole(const char *metric)
{
    const oct_metric *m;
    return oct_metric_find(metric, &m, NULL) == OCT_OK && m->kind == OCT_METRIC_WHOLE;
}

static bool now_has(const oct_eval_model_result *m, size_t n, const char *metric)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(m->scores[i].metric->name, metric) == 0)
            return true;
    return false;
}

static void add_word(oct_buf *b, const char *word)
{
    oct_buf_printf(b, "%s%s", *oct_buf_str(b) ? ", " : "", word);
}

void oct_baseline_gaps(const oct_baseline *b, const oct_eval_result *r, oct_buf *now, oct_buf *then)
{
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_metric *metric = r->models[0].scores[i].metric;
        bool lacks = false;
        for (size_t k = 1; k < r->n_models && metric->kind != OCT_METRIC_WHOLE; k++) {
            const oct_baseline_model *was = find_model(b, r, k);
            lacks |= was && !isnan(r->models[k].scores[i].drop) && !then_has(was, metric->name);
        }
        if (lacks)
            add_word(now, metric->name);
    }
    const oct_baseline_model *was =
        r->n_models > 1 ? find_model(b, r, 1) : NULL; /* a report has the same metrics of all models */
    for (size_t d = 0; was && d < was->n_drops; d++)
        if (!is_whole(was->drops[d].metric) && !now_has(&r->models[1], r->n_scores, was->drops[d].metric))
            add_word(then, was->drops[d].metric);
}
