/* qcalib merge, show and diff: commands on finished tables. */
#include "qcalib/qcalib.h"

#include "base/json.h"
#include "cli/chart.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <assert.h>

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
        oct_calibration_warn_few(tool_voice(cli), sum);
    if (s == OCT_OK)
        oct_cli_note(cli, 0, "%s: %zu tensors over %llu samples", a->output, sum->n_tensors,
                     (unsigned long long)sum->samples);
    oct_calib_destroy(sum);
    return s;
}

static void pin_cell(oct_table *t, const oct_item *x)
{
    char scale[32];
    const double lo = oct_item_number(x, "pin.0"), hi = oct_item_number(x, "pin.1");
    if (oct_item_at(x, "exact"))
        oct_table_cell(t, "pinned %.5g .. %.5g, scale %s, zero point %d of u%d", lo, hi,
                       oct_f32_text(scale, (float)oct_item_number(x, "exact.scale")),
                       (int)oct_item_whole(x, "exact.zero_point"), (int)oct_item_whole(x, "exact.bits"));
    else
        oct_table_cell(t, "pinned %.5g .. %.5g", lo, hi);
}

static void show_row(oct_table *t, const oct_item *x, bool utf8)
{
    const int64_t infinite = oct_item_whole(x, "infinite"), finite = oct_item_whole(x, "values") - infinite;
    const bool off = oct_item_true(x, "off"), pinned = oct_item_at(x, "pin");
    uint64_t count[OCT_CALIBRATION_BINS] = { 0 };
    size_t n = 0;
    char text[32];
    oct_buf line = OCT_BUF_INIT;
    oct_table_row(t);
    oct_table_cell(t, "%s", oct_item_text(x, "name"));
    if (off || finite == 0) {
        oct_table_cell(t, "%s", off ? "off" : pinned ? "" : "no values");
        for (int i = 0; pinned && !off && i < 3; i++)
            oct_table_cell(t, "%s", "");
        if (pinned && !off)
            pin_cell(t, x);
        return;
    }
    oct_table_cell(t, "%.5g", oct_item_number(x, "min"));
    oct_table_cell(t, "%.5g", oct_item_number(x, "max"));
    oct_table_cell(t, "%s", oct_fmt_percent(text, oct_item_number(x, "zeros") / (double)finite));
    const oct_item *counts = oct_item_at(x, "histogram.counts");
    for (const oct_item *c = NULL; n < OCT_CALIBRATION_BINS && (c = oct_item_next(counts, c));)
        count[n++] = (uint64_t)oct_item_whole(c, "");
    oct_chart_spark(&line, count, OCT_CALIBRATION_BINS, OCT_CALIBRATION_BINS, true, utf8);
    oct_table_cell(t, "%s", oct_buf_str(&line));
    oct_buf_free(&line);
    if (pinned)
        pin_cell(t, x);
    else if (infinite)
        oct_table_cell(t, "%lld infinite", (long long)infinite);
}

static oct_status show_table(oct_cli *cli, const oct_item *r, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    const oct_item *shards = oct_item_at(r, "shards"), *tensors = oct_item_at(r, "tensors");
    const char *preprocess = oct_item_text(r, "preprocess"), *missing = oct_item_text(r, "missing");
    oct_print(f, "model %s (%s), %lld samples", oct_item_text(r, "model"), oct_item_text(r, "model_hash"),
              (long long)oct_item_whole(r, "samples"));
    oct_print(f, "%s%s\n", *preprocess ? ", preprocessing " : "", preprocess);
    for (const oct_item *s = NULL; (s = oct_item_next(shards, s));)
        if (oct_item_whole(s, "count") == 1)
            oct_print(f, "all of '%s'\n", oct_item_text(s, "set"));
        else
            oct_print(f, "shard %lld/%lld of '%s'\n", (long long)oct_item_whole(s, "index"),
                      (long long)oct_item_whole(s, "count"), oct_item_text(s, "set"));
    if (missing)
        oct_print(f, "incomplete: lacks %s\n", missing);
    oct_table *t =
        oct_table_of("lrrrll", (const char *[]){ "tensor", "min", "max", "zeros", "min to max, log counts", "" });
    for (const oct_item *x = NULL; (x = oct_item_next(tensors, x));)
        show_row(t, x, oct_term_utf8(f));
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

/* Writes the report of a table as JSON, if one is asked for, and shows it. */
static oct_status write_report(oct_cli *cli, const char *json, const oct_calib *c, bool show, oct_err *err)
{
    oct_document *d = oct_document_create();
    if (d)
        oct_calibration_report(c, d);
    const oct_item *report = oct_document_root(d);
    oct_status s = tool_write_report(json, oct_json_text, report, err);
    if (s == OCT_OK && show)
        s = show_table(cli, report, err);
    oct_document_destroy(d);
    return s;
}

oct_status qcalib_json(const char *path, const oct_calib *c, oct_err *err)
{
    return path ? write_report(NULL, path, c, false, err) : OCT_OK;
}

oct_status qcalib_show(oct_cli *cli, const table_args *a, oct_err *err)
{
    oct_calib *c = NULL;
    OCT_TRY(oct_check_output(cli->json, &a->table, 1, err));
    OCT_TRY(oct_calib_load(a->table, &c, err));
    const oct_status s = write_report(cli, cli->json, c, !cli->quiet, err);
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
