/* Calibration tables that are joined, shown and compared. */
#include "api/calibration_tables.h"

#include "api/samples_int.h"

#include <stdio.h>

/* A merged table that lacks samples is refused unless the user allows it. */
static oct_status check_whole(oct_voice v, const char *output, bool partial, const oct_calib *sum, oct_err *err)
{
    oct_buf missing = OCT_BUF_INIT;
    oct_status s = OCT_OK;
    if (sum->samples == 0 && !partial) {
        s = oct_fail(err, OCT_EUSAGE, "none of the tables holds a sample");
    } else if (oct_calib_missing(sum, &missing) && !partial) {
        s = oct_fail(err, OCT_EUSAGE, "the tables lack %s", oct_buf_str(&missing));
        oct_hint(err, "add the tables of these, or write an incomplete one with --partial");
    } else if (missing.len) {
        oct_say(v, 0, "%s lacks %s", output, oct_buf_str(&missing));
    }
    if (missing.failed)
        s = oct_nomem(err);
    oct_buf_free(&missing);
    return s;
}

/* Copied files have other times of change, too: this alone refuses nothing. */
static void warn_moved(oct_voice v, const char *path, const oct_calib *sum, const oct_calib *c)
{
    const oct_calib_shard *other, *s = oct_calib_moved(sum, c, &other);
    if (s)
        oct_say(v, OCT_NOTE_WARNING, "%s: files of '%s' changed, or were copied, between shard %u/%u and shard %u/%u",
                path, s->set, other->index, other->count, s->index, s->count);
}

oct_status oct_tables_merge(octet_texts tables, const char *output, bool partial, const oct_calibration_host *h,
                            oct_err *err)
{
    oct_calib *sum = NULL;
    oct_status s = oct_check_output(output, tables.v, tables.n, err);
    if (s == OCT_OK)
        s = oct_check_output(h->written, tables.v, tables.n, err);
    for (size_t i = 0; s == OCT_OK && i < tables.n; i++) {
        oct_calib *c = NULL;
        s = oct_calib_load(tables.v[i], &c, err);
        if (s == OCT_OK && !sum) {
            sum = c;
            continue;
        }
        if (s == OCT_OK)
            warn_moved(h->voice, tables.v[i], sum, c);
        if (s == OCT_OK && (s = oct_calib_merge(sum, c, err)) != OCT_OK)
            oct_within(err, "%s", tables.v[i]);
        oct_calib_destroy(c);
    }
    if (s == OCT_OK && !sum)
        s = oct_fail(err, OCT_EUSAGE, "there are no tables to merge");
    if (s == OCT_OK)
        s = check_whole(h->voice, output, partial, sum, err);
    if (s == OCT_OK)
        s = oct_calib_save(sum, output, err);
    if (s == OCT_OK)
        s = h->made(h->arg, sum, NULL, err);
    if (s == OCT_OK) {
        oct_calibration_warn_few(h->voice, sum);
        oct_say(h->voice, 0, "%s: %zu tensors over %llu samples", output, sum->n_tensors,
                (unsigned long long)sum->samples);
    }
    oct_calib_destroy(sum);
    return s;
}

oct_status oct_table_show(const char *table, const oct_calibration_host *h, oct_document *to, oct_err *err)
{
    oct_calib *c = NULL;
    OCT_TRY(oct_check_output(h->written, &table, 1, err));
    OCT_TRY(oct_calib_load(table, &c, err));
    oct_calibration_report(c, NULL, to);
    oct_calib_destroy(c);
    return OCT_OK;
}

/* ---- differences ---- */

static void put_range(oct_json *j, const char *key, const oct_calib_tensor *x)
{
    char text[80];
    if (!x)
        snprintf(text, sizeof text, "-");
    else if (x->off)
        snprintf(text, sizeof text, "off");
    else if (x->pinned)
        snprintf(text, sizeof text, "%.5g .. %.5g pinned", (double)x->pin.lo, (double)x->pin.hi);
    else
        snprintf(text, sizeof text, "%.5g .. %.5g", (double)x->stats.min, (double)x->stats.max);
    oct_json_str(j, key, text);
}

static void put_difference(oct_json *j, const void *row)
{
    const oct_calib_change *v = row;
    oct_json_str(j, "name", v->name);
    oct_json_bool(j, "in_a", v->a != NULL);
    oct_json_bool(j, "in_b", v->b != NULL);
    oct_json_num(j, "change", v->change);
    put_range(j, "range_a", v->a);
    put_range(j, "range_b", v->b);
}

oct_status oct_tables_diff(const char *a, const char *b, const oct_calibration_host *h, oct_document *to, oct_err *err)
{
    const char *in[2] = { a, b };
    oct_calib *x = NULL, *y = NULL;
    oct_calib_change *v = NULL;
    size_t n = 0;
    oct_status s = oct_check_output(h->written, in, 2, err);
    if (s == OCT_OK)
        s = oct_calib_load(a, &x, err);
    if (s == OCT_OK)
        s = oct_calib_load(b, &y, err);
    if (s == OCT_OK && x->model_hash != y->model_hash)
        oct_say(h->voice, OCT_NOTE_WARNING, "the tables are of different models: %s (%016llx) and %s (%016llx)",
                x->model, (unsigned long long)x->model_hash, y->model, (unsigned long long)y->model_hash);
    if (s == OCT_OK) {
        oct_samples_warn_incomplete(h->voice, a, x);
        oct_samples_warn_incomplete(h->voice, b, y);
        s = oct_calib_diff(x, y, &v, &n, err);
    }
    if (s == OCT_OK) {
        oct_json j = { .to = to };
        oct_report_open(&j, "octet-calibration-diff-1");
        oct_json_str(&j, "a", a);
        oct_json_str(&j, "b", b);
        oct_json_rows(&j, "tensors", v, n, sizeof *v, put_difference);
        oct_json_close(&j);
    }
    oct_free(v);
    oct_calib_destroy(x);
    oct_calib_destroy(y);
    return s;
}
