/* What samples or a table say: statistics, the choices that are measured on samples, and with them the decisions. */
#include "qconvert/qconvert.h"

#include "quant/runnable.h"
#include "quant/tune.h"

/* Fewer samples than this are not split: halves would be worse than the optimism they avoid. */
enum { LEAST_SPLIT = 16 };

oct_status session_read_table(session *s, oct_err *err)
{
    const char *path = s->a->calib;
    OCT_TRY(oct_calib_load(path, &s->calib, err));
    uint64_t hash = oct_model_hash(s->m);
    if (s->calib->model_hash == hash) {
        tool_warn_incomplete(s->cli, path, s->calib);
        return OCT_OK;
    }
    oct_fail(err, OCT_EUSAGE, "%s: made from another model: '%s' with hash %016llx, but %s has %016llx", path, s->calib->model,
             (unsigned long long)s->calib->model_hash, s->a->model, (unsigned long long)hash);
    oct_hint(err, "make the table from this model: qcalib %s --data SPEC -o %s", s->a->model, path);
    return OCT_EUSAGE;
}

/* Progress of one part of the samples as that of the whole. */
typedef struct part_progress {
    oct_cli *cli;
    int64_t before, total;
} part_progress;

static void report_part(void *arg, const char *what, int64_t done, int64_t total)
{
    part_progress *p = arg;
    (void)total;
    oct_progress_report(&p->cli->progress, what, p->before + done, p->total);
}

/* Statistics of what the job wants. */
static oct_calibrate_opts wanted(const session *s)
{
    oct_calibrate_opts o = { .threads = (int)s->cli->threads };
    o.values = oct_qjob_values(s->job, &o.axes, &o.n);
    return o;
}

/* A pass over the samples of one part; a tuner (may be NULL) sees them too. */
static oct_status calibrate_part(session *s, int part, oct_tuner *tuner, part_progress *p, oct_calib *c, oct_err *err)
{
    oct_calibrate_opts o = wanted(s);
    o.each = tuner ? oct_tuner_sample : NULL;
    o.each_arg = tuner;
    o.progress = report_part;
    o.progress_arg = p;
    OCT_TRY(oct_source_pick(s->src, &(oct_pick){ .i = part, .n = 2 }, err));
    OCT_TRY(oct_calibrate(s->m->graph, s->src, &o, c, err));
    p->before += (int64_t)c->samples;
    return OCT_OK;
}

/* Why what is measured on the whole model cannot be measured (empty: nothing would be); NULL: it can. */
static const char *no_measuring(const session *s)
{
    if (!oct_qjob_has_grids(s->job))
        return ""; /* nothing has a range to choose */
    if (!oct_runnable_whole(s->m->graph))
        return "the model has an operator that is not known here";
    return oct_source_is_once(s->src) ? "the data can be read once only" : NULL;
}

/* Samples for choices that are measured: more for small models, where they cost little and each tells less. */
static int64_t measured_samples(const session *s)
{
    const int64_t n = 2000000000 / oct_graph_macs(s->m->graph);
    return n < 8 ? 8 : n > 64 ? 64 : n;
}

/* Ranges that are judged on the samples they come from look better the more they clip. So with enough samples candidates come
 * from a table of the odd ones, and the even ones judge them on their way into a table of their own. */
static bool can_split(const session *s)
{
    return !s->a->data.skip_bad && oct_source_count(s->src) >= LEAST_SPLIT;
}

static oct_status calibrate_parts(session *s, oct_err *err)
{
    part_progress p = { .cli = s->cli, .total = oct_source_count(s->src) };
    oct_tuner *tuner = NULL;
    oct_calib *odd = oct_calib_create();
    oct_status st = odd ? calibrate_part(s, 1, NULL, &p, odd, err) : oct_nomem(err);
    if (st == OCT_OK)
        st = oct_tuner_create(s->job, odd, (p.total + 1) / 2, measured_samples(s), &tuner, err);
    if (st == OCT_OK)
        st = calibrate_part(s, 0, tuner, &p, s->calib, err);
    if (st == OCT_OK)
        st = oct_calib_merge(s->calib, odd, err);
    if (st == OCT_OK && tuner)
        st = oct_tuner_choose(tuner, err);
    oct_tuner_destroy(tuner);
    oct_calib_destroy(odd);
    return st;
}

static oct_status calibrate_all(session *s, oct_err *err)
{
    oct_calibrate_opts o = wanted(s);
    o.progress = oct_progress_report;
    o.progress_arg = &s->cli->progress;
    OCT_TRY(oct_calibrate(s->m->graph, s->src, &o, s->calib, err));
    tool_say_bad(s->cli, s->src);
    return OCT_OK;
}

/* Few samples: they are run once more, and judge the ranges that come from them. */
static oct_status tune_again(session *s, oct_err *err)
{
    const int64_t n = measured_samples(s);
    oct_tuner *tuner = NULL;
    oct_calib *none = oct_calib_create();
    oct_calibrate_opts o = { .limit = n, .threads = (int)s->cli->threads, .each = oct_tuner_sample };
    oct_status st = none ? oct_tuner_create(s->job, s->calib, 0, n, &tuner, err) : oct_nomem(err);
    o.each_arg = tuner;
    if (st == OCT_OK && tuner)
        st = oct_source_pick(s->src, &(oct_pick){ .most = n }, err);
    if (st == OCT_OK && tuner)
        st = oct_calibrate(s->m->graph, s->src, &o, none, err);
    if (st == OCT_OK && tuner)
        st = oct_tuner_choose(tuner, err);
    oct_tuner_destroy(tuner);
    oct_calib_destroy(none);
    return st;
}

/* Statistics, and with them the observer where the policy leaves a choice. */
static oct_status calibrate(session *s, oct_err *err)
{
    const size_t n = wanted(s).n;
    if (!(s->calib = oct_calib_create()))
        return oct_nomem(err);
    if (*oct_source_preprocess_words(s->src))
        oct_cli_note(s->cli, 0, "preprocessing: %s", oct_source_preprocess_words(s->src));
    session_keep_aside(s, n > 0);
    if (n == 0)
        return OCT_OK;
    const bool tunes = s->a->recover && !no_measuring(s), splits = tunes && can_split(s);
    OCT_TRY(splits ? calibrate_parts(s, err) : calibrate_all(s, err));
    if (s->calib->n_tensors < n)
        oct_cli_warn(s->cli, "%zu of %zu tensors could not be calibrated: they depend on an operator that is not known here",
                     n - s->calib->n_tensors, n);
    return tunes && !splits ? tune_again(s, err) : OCT_OK;
}

/* With samples at hand: what the biases must make up for. */
static oct_status recover(session *s, oct_err *err)
{
    const int64_t n = measured_samples(s);
    const char *why = no_measuring(s);
    OCT_TRY(oct_qjob_decide(s->job, s->calib, err));
    if (why) {
        if (*why)
            oct_cli_note(s->cli, 0, "%s: ranges by hist-mse, biases corrected from the statistics", why);
        return OCT_OK;
    }
    OCT_TRY(oct_source_pick(s->src, &(oct_pick){ .most = n }, err));
    return oct_qjob_correct(s->job, s->calib, s->src, n, (int)s->cli->threads, err);
}

/* A table made for integers need not have all values that 16-bit floats must hold. */
static void warn_unknown(const session *s)
{
    size_t n, missing = 0;
    const char *const *names = oct_qjob_values(s->job, NULL, &n);
    for (size_t i = 0; i < n; i++)
        missing += oct_calib_find(s->calib, names[i]) == NULL;
    if (missing)
        oct_cli_warn(s->cli, "%s has no range of %zu of %zu tensors: whether float16 holds them is not known", s->a->calib, missing, n);
}

oct_status session_decide(session *s, oct_err *err)
{
    if (s->src)
        OCT_TRY(calibrate(s, err));
    else if (s->calib && !oct_qjob_has_grids(s->job))
        warn_unknown(s);
    OCT_TRY(s->src && s->a->recover ? recover(s, err) : oct_qjob_decide(s->job, s->calib, err));
    return oct_layers_list(s->job, s->arena, &s->layers, &s->n_layers, err);
}
