/* qcalib merge, show and diff: commands on finished tables. */
#include "qcalib/qcalib.h"

#include "base/json.h"
#include "cli/chart.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "observers/exercise.h"

#include <assert.h>
#include <math.h>

enum { COLUMNS = 32 };

/* A merged table that lacks samples is refused unless the user allows it. */
static oct_status check_whole(oct_cli *cli, const table_args *a, const oct_calib *sum, oct_err *err)
{
    oct_buf missing = OCT_BUF_INIT;
    oct_status s = OCT_OK;
    if (sum->samples == 0 && !a->partial) {
        s = oct_fail(err, OCT_EUSAGE, "none of the tables holds a sample");
    } else if (oct_calib_missing(sum, &missing) && !a->partial) {
        s = oct_fail(err, OCT_EUSAGE, "the tables lack %s", oct_buf_str(&missing));
        oct_hint(err, "add the tables of these, or write an incomplete one with --partial");
    } else if (missing.len) {
        oct_cli_note(cli, 0, "%s lacks %s", a->output, oct_buf_str(&missing));
    }
    if (missing.failed)
        s = oct_nomem(err);
    oct_buf_free(&missing);
    return s;
}

void qcalib_warn_few(oct_cli *cli, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT, few = OCT_BUF_INIT;
    oct_exercise_few(c, &few);
    if (few.len && !oct_calib_missing(c, &missing))
        oct_cli_warn(cli, "%s", oct_buf_str(&few));
    oct_buf_free(&few);
    oct_buf_free(&missing);
}

/* Copied files have other times of change, too: this alone refuses nothing. */
static void warn_moved(oct_cli *cli, const char *path, const oct_calib *sum, const oct_calib *c)
{
    const oct_calib_shard *other, *s = oct_calib_moved(sum, c, &other);
    if (s)
        oct_cli_warn(cli, "%s: files of '%s' changed, or were copied, between shard %u/%u and shard %u/%u", path,
                     s->set, other->index, other->count, s->index, s->count);
}

oct_status qcalib_merge(oct_cli *cli, const table_args *a, oct_err *err)
{
    oct_calib *sum = NULL;
    oct_status s = oct_check_output(a->output, a->tables.v, a->tables.n, err);
    if (s == OCT_OK)
        s = oct_check_output(cli->json, a->tables.v, a->tables.n, err);
    for (size_t i = 0; s == OCT_OK && i < a->tables.n; i++) {
        oct_calib *c = NULL;
        s = oct_calib_load(a->tables.v[i], &c, err);
        if (s == OCT_OK && !sum) {
            sum = c;
            continue;
        }
        if (s == OCT_OK)
            warn_moved(cli, a->tables.v[i], sum, c);
        if (s == OCT_OK && (s = oct_calib_merge(sum, c, err)) != OCT_OK)
            oct_within(err, "%s", a->tables.v[i]);
        oct_calib_destroy(c);
    }
    assert(s != OCT_OK || sum); /* the command line requires at least one table */
    if (s == OCT_OK)
        s = check_whole(cli, a, sum, err);
    if (s == OCT_OK)
        s = oct_calib_save(sum, a->output, err);
    if (s == OCT_OK)
        s = qcalib_json(cli->json, sum, err);
    if (s == OCT_OK)
        qcalib_warn_few(cli, sum);
    if (s == OCT_OK)
        oct_cli_note(cli, 0, "%s: %zu tensors over %llu samples", a->output, sum->n_tensors,
                     (unsigned long long)sum->samples);
    oct_calib_destroy(sum);
    return s;
}

/* Counts values between lo and hi in equal steps. A bin is counted at its middle, and the outermost ones where their
 * values are. */
static void histogram(const oct_stats *s, double lo, double hi, uint64_t count[COLUMNS])
{
    oct_bin b;
    for (size_t at = 0; oct_stats_next(s, &at, &b);) {
        const double x = ((b.lo + b.hi) / 2 - lo) / (hi - lo) * COLUMNS;
        if (b.lo <= hi && b.hi >= lo)
            count[x >= COLUMNS ? COLUMNS - 1 : x > 0 ? (int)x : 0] += b.count;
    }
}

/* The interval that is drawn, without values that are used as masks. */
static void drawn_range(const oct_stats *s, double *lo, double *hi)
{
    double bound = oct_stats_masks(s, NULL);
    oct_bin b;
    *lo = *hi = 0;
    for (size_t at = 0; oct_stats_next(s, &at, &b);)
        if (b.lo > -bound && b.hi <= bound) {
            *lo = fmin(*lo, b.lo);
            *hi = fmax(*hi, b.hi);
        }
    *lo = fmax(*lo, fmin((double)s->min, 0));
    *hi = fmin(*hi, fmax((double)s->max, 0));
}

static void pin_cell(oct_table *t, const oct_calib_tensor *x)
{
    char scale[32];
    if (x->exact.bits)
        oct_table_cell(t, "pinned %.5g .. %.5g, scale %s, zero point %d of u%d", (double)x->pin.lo, (double)x->pin.hi,
                       oct_f32_text(scale, x->exact.scale), (int)x->exact.zero, x->exact.bits);
    else
        oct_table_cell(t, "pinned %.5g .. %.5g", (double)x->pin.lo, (double)x->pin.hi);
}

static void show_row(oct_table *t, const oct_calib_tensor *x, bool utf8)
{
    uint64_t finite = oct_stats_finite(&x->stats), count[COLUMNS] = { 0 };
    double lo, hi;
    char text[32];
    oct_buf line = OCT_BUF_INIT;
    oct_table_row(t);
    oct_table_cell(t, "%s", x->name);
    if (x->off || finite == 0) {
        oct_table_cell(t, "%s", x->off ? "off" : x->pinned ? "" : "no values");
        for (int i = 0; x->pinned && !x->off && i < 3; i++)
            oct_table_cell(t, "%s", "");
        if (x->pinned && !x->off)
            pin_cell(t, x);
        return;
    }
    oct_table_cell(t, "%.5g", (double)x->stats.min);
    oct_table_cell(t, "%.5g", (double)x->stats.max);
    oct_table_cell(t, "%s", oct_fmt_percent(text, (double)x->stats.zeros / (double)finite));
    drawn_range(&x->stats, &lo, &hi);
    if (hi > lo)
        histogram(&x->stats, lo, hi, count);
    oct_chart_spark(&line, count, COLUMNS, COLUMNS, true, utf8);
    oct_table_cell(t, "%s", oct_buf_str(&line));
    oct_buf_free(&line);
    if (x->pinned)
        pin_cell(t, x);
    else if (x->stats.inf[0] || x->stats.inf[1])
        oct_table_cell(t, "%llu infinite", (unsigned long long)x->stats.inf[0] + (unsigned long long)x->stats.inf[1]);
}

static oct_status show_table(oct_cli *cli, const oct_calib *c, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    oct_table *t = oct_table_create();
    oct_print(f, "model %s (%016llx), %llu samples", c->model, (unsigned long long)c->model_hash,
              (unsigned long long)c->samples);
    oct_print(f, "%s%s\n", *c->preprocess ? ", preprocessing " : "", c->preprocess);
    for (size_t i = 0; i < c->n_shards; i++)
        if (c->shards[i].count == 1)
            oct_print(f, "all of '%s'\n", c->shards[i].set);
        else
            oct_print(f, "shard %u/%u of '%s'\n", c->shards[i].index, c->shards[i].count, c->shards[i].set);
    oct_buf missing = OCT_BUF_INIT;
    if (oct_calib_missing(c, &missing))
        oct_print(f, "incomplete: lacks %s\n", oct_buf_str(&missing));
    oct_buf_free(&missing);
    oct_table_column(t, "tensor", OCT_LEFT);
    oct_table_column(t, "min", OCT_RIGHT);
    oct_table_column(t, "max", OCT_RIGHT);
    oct_table_column(t, "zeros", OCT_RIGHT);
    oct_table_column(t, "min to max, log counts", OCT_LEFT);
    oct_table_column(t, "", OCT_LEFT);
    for (size_t i = 0; i < c->n_tensors; i++)
        show_row(t, c->tensors[i], oct_term_utf8(f));
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static void put_tensor(oct_json *j, const void *row)
{
    const oct_calib_tensor *x = *(oct_calib_tensor *const *)row;
    uint64_t count[COLUMNS] = { 0 };
    double lo, hi;
    oct_json_str(j, "name", x->name);
    oct_json_bool(j, "off", x->off);
    oct_json_int(j, "values", (int64_t)x->stats.n);
    oct_json_int(j, "zeros", (int64_t)x->stats.zeros);
    oct_json_int(j, "infinite", (int64_t)(x->stats.inf[0] + x->stats.inf[1]));
    oct_json_num(j, "min", (double)x->stats.min);
    oct_json_num(j, "max", (double)x->stats.max);
    if (x->pinned) {
        oct_json_open(j, "pin", '[');
        oct_json_num(j, NULL, (double)x->pin.lo);
        oct_json_num(j, NULL, (double)x->pin.hi);
        oct_json_close(j);
    }
    if (x->pinned && x->exact.bits) {
        oct_json_open(j, "exact", '{');
        oct_json_int(j, "bits", x->exact.bits);
        oct_json_num(j, "scale", (double)x->exact.scale);
        oct_json_int(j, "zero_point", x->exact.zero);
        oct_json_close(j);
    }
    drawn_range(&x->stats, &lo, &hi);
    if (oct_stats_finite(&x->stats) && hi > lo) {
        histogram(&x->stats, lo, hi, count);
        oct_json_open(j, "histogram", '{');
        oct_json_num(j, "low", lo);
        oct_json_num(j, "high", hi);
        oct_json_open(j, "counts", '[');
        for (int i = 0; i < COLUMNS; i++)
            oct_json_int(j, NULL, (int64_t)count[i]);
        oct_json_close(j);
        oct_json_close(j);
    }
}

static void put_shard(oct_json *j, const void *row)
{
    const oct_calib_shard *s = row;
    oct_json_str(j, "set", s->set);
    oct_json_int(j, "index", s->index);
    oct_json_int(j, "count", s->count);
}

static void json_shards(oct_json *j, const oct_calib *c)
{
    oct_buf missing = OCT_BUF_INIT;
    oct_json_rows(j, "shards", c->shards, c->n_shards, sizeof *c->shards, put_shard);
    oct_json_str(j, "missing", oct_calib_missing(c, &missing) ? oct_buf_str(&missing) : NULL);
    j->out->failed |= missing.failed;
    oct_buf_free(&missing);
}

oct_status qcalib_json(const char *path, const oct_calib *c, oct_err *err)
{
    if (!path)
        return OCT_OK;
    char hash[20];
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)c->model_hash);
    oct_report_open(&j, "octet-calibration-1");
    oct_json_str(&j, "model", c->model);
    oct_json_str(&j, "model_hash", hash);
    oct_json_str(&j, "preprocess", c->preprocess);
    oct_json_int(&j, "samples", (int64_t)c->samples);
    json_shards(&j, c);
    oct_json_rows(&j, "tensors", c->tensors, c->n_tensors, sizeof *c->tensors, put_tensor);
    return tool_write_json(path, &j, err);
}

oct_status qcalib_show(oct_cli *cli, const table_args *a, oct_err *err)
{
    oct_calib *c = NULL;
    OCT_TRY(oct_check_output(cli->json, &a->table, 1, err));
    OCT_TRY(oct_calib_load(a->table, &c, err));
    oct_status s = qcalib_json(cli->json, c, err);
    if (s == OCT_OK && !cli->quiet)
        s = show_table(cli, c, err);
    oct_calib_destroy(c);
    return s;
}

/* ---- diff ---- */

static void range_cell(oct_table *t, const oct_calib_tensor *x)
{
    if (!x)
        oct_table_cell(t, "-");
    else if (x->off)
        oct_table_cell(t, "off");
    else if (x->pinned)
        oct_table_cell(t, "%.5g .. %.5g pinned", (double)x->pin.lo, (double)x->pin.hi);
    else
        oct_table_cell(t, "%.5g .. %.5g", (double)x->stats.min, (double)x->stats.max);
}

static oct_status diff_table(oct_cli *cli, const table_args *a, const oct_calib_change *v, size_t n, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    char text[32];
    if (n == 0) {
        oct_print(f, "no difference between %s and %s\n", a->a, a->b);
        return OCT_OK;
    }
    oct_table *t =
        oct_table_of("lrrr", (const char *[]){ "tensor", oct_path_base(a->a), oct_path_base(a->b), "range moved" });
    for (size_t i = 0; i < n; i++) {
        oct_table_row(t);
        oct_table_cell(t, "%s", v[i].name);
        range_cell(t, v[i].a);
        range_cell(t, v[i].b);
        oct_table_cell(t, "%s", oct_fmt_percent(text, v[i].change));
    }
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static void put_difference(oct_json *j, const void *row)
{
    const oct_calib_change *v = row;
    oct_json_str(j, "name", v->name);
    oct_json_bool(j, "in_a", v->a != NULL);
    oct_json_bool(j, "in_b", v->b != NULL);
    oct_json_num(j, "change", v->change);
}

static oct_status diff_json(const char *path, const table_args *a, const oct_calib_change *v, size_t n, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    oct_report_open(&j, "octet-calibration-diff-1");
    oct_json_str(&j, "a", a->a);
    oct_json_str(&j, "b", a->b);
    oct_json_rows(&j, "tensors", v, n, sizeof *v, put_difference);
    return tool_write_json(path, &j, err);
}

oct_status qcalib_diff(oct_cli *cli, const table_args *a, oct_err *err)
{
    const char *in[2] = { a->a, a->b };
    oct_calib *x = NULL, *y = NULL;
    oct_calib_change *v = NULL;
    size_t n = 0;
    oct_status s = oct_check_output(cli->json, in, 2, err);
    if (s == OCT_OK)
        s = oct_calib_load(a->a, &x, err);
    if (s == OCT_OK)
        s = oct_calib_load(a->b, &y, err);
    if (s == OCT_OK && x->model_hash != y->model_hash)
        oct_cli_warn(cli, "the tables are of different models: %s (%016llx) and %s (%016llx)", x->model,
                     (unsigned long long)x->model_hash, y->model, (unsigned long long)y->model_hash);
    if (s == OCT_OK) {
        oct_samples_warn_incomplete(tool_voice(cli), a->a, x);
        oct_samples_warn_incomplete(tool_voice(cli), a->b, y);
        s = oct_calib_diff(x, y, &v, &n, err);
    }
    if (s == OCT_OK && cli->json)
        s = diff_json(cli->json, a, v, n, err);
    if (s == OCT_OK && !cli->quiet)
        s = diff_table(cli, a, v, n, err);
    oct_free(v);
    oct_calib_destroy(x);
    oct_calib_destroy(y);
    return s;
}
