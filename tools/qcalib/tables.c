/* The commands of qcalib on finished tables and samples, and what they print. */
#include "qcalib/qcalib.h"

#include "base/io.h"
#include "cli/chart.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "common/print_answer.h"
#include "common/print_rows.h"

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

static const char *range_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_item_text(row, path);
}

static const char *change_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_fmt_percent(dst, oct_item_number(row, path));
}

static oct_status print_diff(oct_cli *cli, const oct_item *r, oct_err *err)
{
    const oct_item *tensors = oct_item_at(r, "tensors");
    const char *a = oct_item_text(r, "a"), *b = oct_item_text(r, "b");
    const tool_column column[] = { { "tensor", "name", NULL },
                                   { oct_path_base(a), "range_a", range_cell },
                                   { oct_path_base(b), "range_b", range_cell },
                                   { "range moved", "change", change_cell } };
    FILE *f = oct_cli_result(cli);
    if (oct_item_count(tensors, ""))
        return tool_print_rows(tensors, SIZE_MAX, column, OCT_COUNT(column), f, err);
    oct_print(f, "no difference between %s and %s\n", a, b);
    return OCT_OK;
}

/* ---- the commands ---- */

/* Writes a report as JSON, and prints it; print NULL: for nobody else. */
static oct_status finish(oct_cli *cli, oct_document *d, oct_status s,
                         oct_status (*print)(oct_cli *cli, const oct_item *r, oct_err *err), oct_err *err)
{
    if (s == OCT_OK)
        s = tool_write_report(cli->json, oct_json_text, oct_document_root(d), err);
    if (s == OCT_OK && print && !cli->quiet)
        s = print(cli, oct_document_root(d), err);
    oct_document_destroy(d);
    return s;
}

static oct_status write_table(void *arg, const oct_calib *c, const oct_item *answer, oct_err *err)
{
    oct_cli *cli = arg;
    if (answer && !cli->quiet)
        tool_print_answer(answer, oct_cli_result(cli));
    if (!cli->json)
        return OCT_OK;
    oct_document *d = oct_document_create();
    if (d)
        oct_calibration_report(c, answer, d);
    return finish(cli, d, OCT_OK, NULL, err);
}

oct_calibration_host qcalib_host(oct_cli *cli)
{
    return (oct_calibration_host){ .voice = tool_voice(cli), .written = cli->json, .made = write_table, .arg = cli };
}

oct_status qcalib_show(oct_cli *cli, const table_args *a, oct_err *err)
{
    oct_document *d = oct_document_create();
    const oct_calibration_host h = qcalib_host(cli);
    return finish(cli, d, d ? oct_table_show(a->table, &h, d, err) : oct_nomem(err), show_table, err);
}

oct_status qcalib_diff(oct_cli *cli, const table_args *a, oct_err *err)
{
    oct_document *d = oct_document_create();
    const oct_calibration_host h = qcalib_host(cli);
    return finish(cli, d, d ? oct_tables_diff(a->a, a->b, &h, d, err) : oct_nomem(err), print_diff, err);
}

oct_status qcalib_pack(oct_cli *cli, const pack_args *a, oct_err *err)
{
    OCT_TRY(oct_check_output(cli->json, a->specs.v, a->specs.n, err));
    oct_document *d = oct_document_create();
    const oct_status s =
        d ? oct_samples_pack(tool_texts(a->specs), a->output, a->count, a->size, tool_voice(cli), d, err)
          : oct_nomem(err);
    return finish(cli, d, s, NULL, err);
}

oct_status qcalib_export(oct_cli *cli, const foreign_args *a, oct_err *err)
{
    const oct_table_export_options x = { a->table, a->format, a->observer, a->model, a->output };
    const oct_calibration_host h = qcalib_host(cli);
    const char *form;
    oct_buf text = OCT_BUF_INIT;
    size_t n = 0;
    oct_status s = oct_table_export(&x, &h, &text, &n, &form, err);
    if (s == OCT_OK)
        s = oct_write_text(a->output, &text, err);
    if (s == OCT_OK)
        oct_cli_note(cli, 0, "%s: %zu ranges (%s)", a->output, n, form);
    oct_buf_free(&text);
    return s;
}
