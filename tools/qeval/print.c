/* Prints a report as tables. */
#include "qeval.h"

#include "base/io.h"
#include "common/print_answer.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORST = 3, PROFILE_ROWS = 30, FEW_METRICS = 3 };
#define BAD_DB 20           /* a layer's own SQNR below which something is to be done */
#define MANY_SATURATED 0.01 /* share of its values */
#define FEW_CODES 0.25      /* share of the quantized values */

static const oct_item *models_of(const oct_item *report)
{
    return oct_item_at(report, "models");
}

static const char *name_of(const oct_item *model)
{
    return oct_path_base(oct_item_text(model, "path"));
}

/* "model" if there is no other, else "float", "quant" or "quant 2". */
static const char *title_of(char dst[24], size_t k, size_t n)
{
    snprintf(dst, 24, n > 2 && k ? "quant %zu" : k ? "quant" : n > 1 ? "float" : "model", k);
    return dst;
}

/* Whether the names of several models can head their columns on this terminal. */
static bool names_fit(const oct_item *report, FILE *f)
{
    enum { FIRST = 14, GAP = 2, NARROW = 10, PAPER = 80 };
    const int have = oct_term_width(f);
    int width = FIRST;
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));) {
        const int name = oct_utf8_width(name_of(k));
        width += GAP + (name > NARROW ? name : NARROW);
    }
    return width <= (have ? have : PAPER);
}

static const char *value_text(char dst[48], const oct_item *metric, double v)
{
    char num[32];
    if (isnan(v))
        return "";
    if (oct_item_true(metric, "percent"))
        snprintf(dst, 48, "%s", oct_fmt_percent(num, v));
    else if (strcmp(oct_item_text(metric, "unit"), "dB") == 0)
        snprintf(dst, 48, "%s", oct_fmt_db(num, v));
    else
        snprintf(dst, 48, "%.6g", v);
    return dst;
}

static const char *ratio_text(char dst[64], double reference, double value, const char *better, const char *worse)
{
    if (!(reference > 0) || !(value > 0))
        return "";
    if (value == reference)
        return "the same";
    if (value <= reference)
        snprintf(dst, 64, "%.2f times %s", reference / value, better);
    else
        snprintf(dst, 64, "%.2f times %s", value / reference, worse);
    return dst;
}

static const oct_item *drop_of(const oct_item *model, const oct_item *metric)
{
    return oct_item_member(oct_item_at(model, "drop"), oct_item_text(metric, "name"));
}

/* ---- the rows of the first table ---- */

/* The only model that is compared with the float model; NULL: there is none, or there are several. */
static const oct_item *only_quant(const oct_item *report)
{
    return oct_item_count(models_of(report), "") == 2 ? oct_item_of(models_of(report), 1) : NULL;
}

/* Of many metrics, those that compare with float say much the same: SQNR speaks for them. */
static bool is_extra(const oct_item *report, const oct_item *metric)
{
    return oct_item_count(oct_item_at(report, "metrics"), "") > FEW_METRICS && oct_item_true(metric, "relative") &&
           strcmp(oct_item_text(metric, "unit"), "dB") != 0 &&
           metric != qeval_counting(report, oct_item_of(models_of(report), 1));
}

static void score_rows(oct_table *t, const oct_item *report, bool every)
{
    const oct_item *metrics = oct_item_at(report, "metrics"), *quant = only_quant(report);
    char text[48];
    for (const oct_item *m = NULL; (m = oct_item_next(metrics, m));) {
        const char *name = oct_item_text(m, "name"), *drop = oct_item_text(drop_of(quant, m), "text");
        if (!every && is_extra(report, m))
            continue;
        oct_table_row(t);
        oct_table_cell(t, "%s", name);
        for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));)
            oct_table_cell(t, "%s",
                           value_text(text, m, oct_item_number(oct_item_member(oct_item_at(k, "metrics"), name), "")));
        if (drop && !oct_item_true(m, "relative")) /* the verdict has the interval of the one that counts */
            oct_table_cell(t, "%.*s",
                           (int)(!every && m == qeval_counting(report, quant) ? strcspn(drop, "(,") : strlen(drop)),
                           drop);
    }
}

/* If several models are compared with the float model: a line below the table for each metric and model, with the
 * difference, and one for its speed; but for every, without what the verdict and the table have said. */
static void print_drops(const oct_item *report, bool every, FILE *f)
{
    const oct_item *metrics = oct_item_at(report, "metrics");
    if (only_quant(report))
        return;
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));) {
        for (const oct_item *m = NULL; (m = oct_item_next(metrics, m));)
            if (!oct_item_true(m, "relative") && drop_of(k, m) && (every || m != qeval_counting(report, k)))
                oct_print_line(f, "", 0, "%s, %s: %s", name_of(k), oct_item_text(m, "name"),
                               oct_item_text(drop_of(k, m), "text"));
        if (every && oct_item_at(k, "speed"))
            oct_print_line(f, "", 0, "%s, latency: %s", name_of(k), oct_item_text(k, "speed.text"));
    }
}

/* An item for each gate of a model: a mark and a text. Those that are met for certain are only named, if not every text
 * is wanted. */
static void print_gates_of(const oct_item *report, size_t k, bool every, FILE *f)
{
    const oct_item *gates = oct_item_at(report, "gates");
    oct_buf named = OCT_BUF_INIT;
    for (const oct_item *g = NULL; (g = oct_item_next(gates, g));) {
        const bool met = oct_item_true(g, "met"), unsure = oct_item_true(g, "unsure");
        if (oct_item_whole(g, "model_number") != (int64_t)k)
            continue;
        if (met && !unsure && !every)
            oct_buf_printf(&named, "%s%s", named.len ? ", " : "", oct_item_text(g, "title"));
        else
            tool_print_item(unsure ? met ? "  met?" : "  MISSED?"
                            : met  ? "  met"
                                   : "  MISSED",
                            oct_item_text(g, "text"), f);
    }
    if (named.len)
        tool_print_item("  met", oct_buf_str(&named), f);
    oct_buf_free(&named);
}

static void print_gates(const oct_item *report, bool every, FILE *f)
{
    const size_t n = oct_item_count(models_of(report), "");
    for (size_t k = 1; k < n && oct_item_count(oct_item_at(report, "gates"), ""); k++) {
        if (only_quant(report))
            oct_print(f, "\n");
        else
            oct_print(f, "\ngates of %s\n", name_of(oct_item_of(models_of(report), k)));
        print_gates_of(report, k, every, f);
    }
}

/* Explains the intervals, if there are any. */
static void print_method(const oct_item *report, FILE *f)
{
    const oct_item *metrics = oct_item_at(report, "metrics"), *quant = oct_item_of(models_of(report), 1);
    const char *said[3] = { NULL };
    size_t n = 0;
    for (const oct_item *m = NULL; n < OCT_COUNT(said) && (m = oct_item_next(metrics, m));) {
        const char *method = oct_item_text(drop_of(quant, m), "interval");
        bool known = !method || oct_item_true(m, "relative");
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(said[k], method) == 0;
        if (!known)
            said[n++] = method;
    }
    for (size_t i = 0; i < n; i++)
        oct_print(f, "%s%s", i ? ", " : "95 % intervals of paired differences: ", said[i]);
    fputs(n ? "\n" : "", f);
}

/* A time of an object that has it as `ms`, or as the median of quartiles; ~ marks one that varies widely. */
static const char *time_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const oct_item *x = oct_item_at(row, path);
    char ms[32];
    const double v = oct_item_number(x, oct_item_at(x, "ms") ? "ms" : "median");
    if (isnan(v))
        return "";
    snprintf(dst, TOOL_CELL, "%s%s", oct_item_true(x, "wide") ? "~" : "", oct_fmt_ms(ms, v / 1e3));
    return dst;
}

static void latency_rows(oct_table *t, const oct_item *report, bool every)
{
    const oct_item *models = models_of(report), *quant = only_quant(report);
    const double threads = oct_item_number(report, "threads");
    char low[32], high[32], cell[TOOL_CELL];
    if (!oct_item_is_any(oct_item_at(report, "float.latency_ms")))
        return;
    oct_table_row(t);
    oct_table_cell(t, "latency");
    for (const oct_item *k = NULL; (k = oct_item_next(models, k));)
        oct_table_cell(t, "%s", time_cell(cell, k, "latency_ms"));
    if (quant)
        oct_table_cell(t, "%s", oct_item_at(quant, "speed") ? oct_item_text(quant, "speed.text") : "");
    if (!every)
        return;
    oct_table_row(t);
    oct_table_cell(t, "  quartiles");
    for (const oct_item *k = NULL; (k = oct_item_next(models, k));) {
        oct_fmt_ms(low, oct_item_number(k, "latency_ms.q1") / 1e3);
        low[strcspn(low, " ")] = 0;
        oct_table_cell(t, "%s-%s", low, oct_fmt_ms(high, oct_item_number(k, "latency_ms.q3") / 1e3));
    }
    if (quant)
        oct_table_cell(t, "%.0f runs in turn, %.0f thread%s", oct_item_number(report, "float.latency_ms.runs"), threads,
                       threads == 1 ? "" : "s");
}

/* Of several models, how much faster than float each is, where that is known. */
static void speed_row(oct_table *t, const oct_item *report)
{
    if (only_quant(report) || !oct_item_is_any(oct_item_at(report, "float.latency_ms")))
        return;
    oct_table_row(t);
    oct_table_cell(t, "times faster");
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));)
        if (oct_item_at(k, "speed.median"))
            oct_table_cell(t, "%.2f", oct_item_number(k, "speed.median"));
        else
            oct_table_cell(t, "%s", oct_item_at(k, "speed") ? "?" : "");
}

static void bytes_row(oct_table *t, const oct_item *report, const char *title, const char *member, const char *better,
                      const char *worse)
{
    char text[32], ratio[64];
    oct_table_row(t);
    oct_table_cell(t, "%s", title);
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));)
        oct_table_cell(t, "%s",
                       isnan(oct_item_number(k, member)) ? "not known"
                                                         : oct_fmt_bytes(text, (uint64_t)oct_item_whole(k, member)));
    if (only_quant(report))
        oct_table_cell(t, "%s",
                       ratio_text(ratio, oct_item_number(oct_item_at(report, "float"), member),
                                  oct_item_number(only_quant(report), member), better, worse));
}

static int64_t layers_in_blocks(const oct_item *model, int64_t bits)
{
    const oct_item *blocks = oct_item_at(model, "blocks");
    for (const oct_item *b = NULL; (b = oct_item_next(blocks, b));)
        if (oct_item_whole(b, "bits") == bits)
            return oct_item_whole(b, "layers");
    return 0;
}

static void layers_row(oct_table *t, const oct_item *report, const char *title, int64_t bits)
{
    oct_table_row(t);
    oct_table_cell(t, "%s", title);
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));)
        oct_table_cell(t, oct_item_text(k, "runner") ? "not known" : "%lld of %lld",
                       (long long)(bits ? layers_in_blocks(k, bits) : oct_item_whole(k, "integer_layers")),
                       (long long)oct_item_whole(k, "weighted_layers"));
}

/* How many layers are int8, and how many have weights in blocks; only kinds that a model has, if it has any. */
static void layers_rows(oct_table *t, const oct_item *report)
{
    enum { MOST_BITS = 8 };
    char title[24];
    bool integer = false, blocks[MOST_BITS + 1] = { false }, any = false;
    for (const oct_item *k = NULL; (k = oct_item_next(models_of(report), k));) {
        integer |= oct_item_number(k, "integer_layers") > 0;
        for (int bits = 1; bits <= MOST_BITS; bits++)
            any |= blocks[bits] |= layers_in_blocks(k, bits) > 0;
    }
    if (integer || !any)
        layers_row(t, report, "int8 layers", 0);
    for (int bits = 1; bits <= MOST_BITS; bits++) {
        snprintf(title, sizeof title, "layers in %d bits", bits);
        if (blocks[bits])
            layers_row(t, report, title, bits);
    }
}

static oct_status print_summary(const oct_item *report, bool every, FILE *f, oct_err *err)
{
    const size_t n = oct_item_count(models_of(report), "");
    char title[24];
    oct_table *t = oct_table_create();
    oct_table_column(t, "", OCT_LEFT);
    for (size_t k = 0; k < n; k++)
        oct_table_column(t,
                         n > 2 && names_fit(report, f) ? name_of(oct_item_of(models_of(report), k))
                                                       : title_of(title, k, n),
                         OCT_RIGHT);
    if (n == 2)
        oct_table_column(t, "difference", OCT_LEFT);
    score_rows(t, report, every);
    latency_rows(t, report, every);
    speed_row(t, report);
    bytes_row(t, report, "size", "size_bytes", "smaller", "larger");
    bytes_row(t, report, "memory", "peak_bytes", "less", "more");
    layers_rows(t, report);
    oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

/* ---- outputs ---- */

static const char *output_db_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const double db = oct_item_number(row, path);
    return isnan(db) && !oct_item_whole(row, "broken") ? "" : oct_fmt_db(dst, db);
}

static const char *number_cell(char dst[TOOL_CELL], const char *form, double v)
{
    snprintf(dst, TOOL_CELL, form, v);
    return isnan(v) ? "" : dst;
}

static const char *cosine_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return number_cell(dst, "%.6f", oct_item_number(row, path));
}

static const char *error_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return number_cell(dst, "%.4g", oct_item_number(row, path));
}

/* An output may have another number of values in some samples. */
static const char *length_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const int64_t apart = oct_item_whole(row, path);
    snprintf(dst, TOOL_CELL, "%lld of %lld samples", (long long)apart, (long long)oct_item_whole(row, "samples"));
    return apart ? dst : "";
}

/* The worst of several outputs. */
static void print_worst_output(const oct_item *report, const oct_item *model, FILE *f)
{
    const oct_item *outputs = oct_item_at(model, "outputs"), *worst = NULL;
    const size_t n = oct_item_count(outputs, "");
    char db[TOOL_CELL];
    for (const oct_item *o = NULL; (o = oct_item_next(outputs, o));)
        if (!isnan(oct_item_number(o, "sqnr_db")) &&
            !(oct_item_number(worst, "sqnr_db") <= oct_item_number(o, "sqnr_db")))
            worst = o;
    if (n < 2 || !worst)
        return;
    oct_buf b = OCT_BUF_INIT;
    if (!only_quant(report))
        oct_buf_printf(&b, "%s: ", name_of(model));
    oct_buf_printf(&b, "%s is the worst of %zu: SQNR %s.", oct_item_text(worst, "name"), n,
                   oct_fmt_db(db, oct_item_number(worst, "sqnr_db")));
    tool_print_item("Outputs", oct_buf_str(&b), f);
    oct_buf_free(&b);
}

static oct_status print_outputs(const oct_item *report, const oct_item *model, bool every, FILE *f, oct_err *err)
{
    static const tool_column matched = { "matched", "matched", tool_percent_cell },
                             length = { "other length", "other_length", length_cell };
    tool_column column[6] = { { "output", "name", NULL },
                              { "SQNR", "sqnr_db", output_db_cell },
                              { "cosine", "cosine", cosine_cell },
                              { "max error", "max_abs_error", error_cell } };
    const oct_item *outputs = oct_item_at(model, "outputs");
    bool codes = false, apart = false;
    size_t n = 4;
    for (const oct_item *o = NULL; (o = oct_item_next(outputs, o));) {
        codes |= !strstr(oct_item_text(o, "holds"), "numbers");
        apart |= oct_item_whole(o, "other_length") > 0;
    }
    if (!every && !apart && !codes) {
        print_worst_output(report, model, f);
        return OCT_OK;
    }
    if (oct_item_count(outputs, "") < 2 && !apart) /* the metrics say all of it */
        return OCT_OK;
    if (codes)
        column[n++] = matched;
    if (apart)
        column[n++] = length;
    oct_print(f, "\n");
    return tool_print_rows(outputs, SIZE_MAX, column, n, f, err);
}

/* ---- layers ---- */

static const char *share_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const double share = oct_item_number(row, path);
    if (!(share > 0))
        return "";
    if (share < 5e-4)
        return "< 0.1 %";
    snprintf(dst, TOOL_CELL, "%.1f %%", 100 * share);
    return dst;
}

static const char *dead_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const int64_t dead = oct_item_whole(row, path);
    snprintf(dst, TOOL_CELL, "%lld of %lld", (long long)dead, (long long)oct_item_whole(row, "channels"));
    return dead ? dst : "";
}

/* Explains the columns, and how layers were matched if not by names alone. */
static void print_legend(const oct_item *layers, FILE *f)
{
    enum { NAME, STRUCTURE, WEIGHTS, HOW };
    static const char *const words[HOW] = { "name", "structure", "weights" };
    size_t by[HOW] = { 0 }, n = oct_item_count(layers, "");
    for (const oct_item *l = NULL; (l = oct_item_next(layers, l));)
        for (int how = 0; how < HOW; how++)
            by[how] += strcmp(oct_item_text(l, "paired_by"), words[how]) == 0;
    tool_print_item(NULL,
                    "alone: SQNR with inputs as in the float model; SQNR: with the error of everything before; "
                    "saturated: values beyond the range; codes: share of the quantized values that occur; dead: "
                    "channels that are constant only here; weights: SQNR of the weights",
                    f);
    if (by[NAME] != n)
        oct_print(f, "of %zu layers %zu were found by name, %zu by structure, %zu by weights\n", n, by[NAME],
                  by[STRUCTURE], by[WEIGHTS]);
}

/* What to do about the worst layer, if it is bad: what its values show is the likely cause. */
static void print_advice(const oct_item *layers, FILE *f)
{
    const oct_item *l = oct_item_next(layers, NULL);
    const double db = oct_item_number(l, "own_sqnr_db"), codes = oct_item_number(l, "range.codes_used");
    oct_buf b = OCT_BUF_INIT;
    if (!(db < BAD_DB))
        return;
    if (oct_item_number(l, "range.saturated") > MANY_SATURATED)
        oct_buf_printf(&b, "Values of %s lie beyond its range: calibrate with more samples, of every kind. Else ",
                       oct_item_text(l, "name"));
    else if (codes < FEW_CODES)
        oct_buf_printf(&b,
                       "Few quantized values of %s occur, as single large values set its scale. To try: qconvert "
                       "--observer hist-percentile=99.9. Else ",
                       oct_item_text(l, "name"));
    oct_buf_printf(&b, "qconvert --set 'name:%s=float' leaves it float.", oct_item_text(l, "name"));
    tool_print_item("To do", oct_buf_str(&b), f);
    oct_buf_free(&b);
}

/* The worst layers of a model: "conv1 (Conv) 20.1 dB alone, ...". */
static void put_worst_layers(const oct_item *model, int most, oct_buf *b)
{
    const oct_item *layers = oct_item_at(model, "layers"), *l = NULL;
    char db[TOOL_CELL];
    for (int i = 0; i < most && (l = oct_item_next(layers, l)); i++) {
        const bool own = oct_item_at(l, "own_sqnr_db") != NULL;
        oct_buf_printf(b, "%s%s (%s) %s%s", i ? ", " : "", oct_item_text(l, "name"), oct_item_text(l, "op"),
                       tool_db_cell(db, l, own ? "own_sqnr_db" : "sqnr_db"), own ? i ? "" : " alone" : " in all");
    }
}

/* In a sentence: those of the only model, or the worst one of each of several. */
static void print_worst_layers(const oct_item *report, FILE *f)
{
    const oct_item *models = models_of(report);
    oct_buf b = OCT_BUF_INIT;
    for (const oct_item *k = oct_item_next(models, NULL); (k = oct_item_next(models, k));) {
        if (!oct_item_count(oct_item_at(k, "layers"), ""))
            continue;
        oct_buf_puts(&b, b.len ? "; " : "");
        if (!only_quant(report))
            oct_buf_printf(&b, "%s: ", name_of(k));
        put_worst_layers(k, only_quant(report) ? WORST : 1, &b);
    }
    if (b.len) {
        oct_buf_puts(&b, ".");
        tool_print_item("Worst", oct_buf_str(&b), f);
    }
    oct_buf_free(&b);
    if (only_quant(report)) /* of several, the last command asks about one */
        print_advice(oct_item_at(only_quant(report), "layers"), f);
}

/* brief: on a screen, whose columns are explained elsewhere. */
static oct_status print_layers(const oct_item *report, const oct_item *model, bool all, bool brief, FILE *f,
                               oct_err *err)
{
    enum { ON_SCREEN = 5 };
    static const tool_column column[] = { { "layer", "name", NULL },
                                          { "op", "op", NULL },
                                          { "scheme", "scheme", NULL },
                                          { "alone", "own_sqnr_db", tool_db_cell },
                                          { "SQNR", "sqnr_db", tool_db_cell },
                                          { "saturated", "range.saturated", share_cell },
                                          { "codes", "range.codes_used", share_cell },
                                          { "dead", "dead_channels", dead_cell },
                                          { "weights", "weights.sqnr_db", tool_db_cell } };
    const oct_item *layers = oct_item_at(model, "layers");
    const bool many = !only_quant(report);
    char count[32];
    if (!oct_item_count(layers, ""))
        return OCT_OK;
    oct_print(f, "\n%s%s%s (%s samples)\n", all ? "layers" : "worst layers", many ? " of " : "",
              many ? name_of(model) : "", oct_fmt_count(count, oct_item_whole(report, "layer_samples")));
    const size_t n = oct_item_count(layers, ""), shown = brief ? ON_SCREEN : all ? SIZE_MAX : WORST;
    OCT_TRY(tool_print_rows(layers, shown, column, OCT_COUNT(column), f, err));
    if (brief && n > shown)
        oct_print(f, "%zu more: -v shows all, and explains the columns\n", n - shown);
    if (!brief)
        print_legend(layers, f);
    print_advice(layers, f);
    return OCT_OK;
}

/* Where the runtime that a model is computed as differs from ours. */
static oct_status print_device(const oct_item *report, const oct_item *model, bool all, FILE *f, oct_err *err)
{
    static const tool_column column[] = { { "layer", "name", NULL },
                                          { "op", "op", NULL },
                                          { "values", "values", tool_whole_cell },
                                          { "differ", "differ", tool_whole_cell },
                                          { "steps", "most_steps", tool_whole_cell },
                                          { "in all", "differ_in_all", tool_whole_cell },
                                          { "steps", "most_steps_in_all", tool_whole_cell } };
    const oct_item *device = oct_item_at(model, "device"), *layers = oct_item_at(device, "layers");
    const size_t n = oct_item_count(layers, "");
    oct_buf b = OCT_BUF_INIT;
    if (!device)
        return OCT_OK;
    if (!only_quant(report))
        oct_buf_printf(&b, "%s: ", name_of(model));
    const bool brief = !all && oct_term_width(f); /* a screen has no room for the table */
    oct_buf_printf(&b, "%s.%s", oct_item_text(device, "text"), brief && n ? " --layers lists them." : "");
    tool_print_item("Device", oct_buf_str(&b), f);
    oct_buf_free(&b);
    if (brief || !n)
        return OCT_OK;
    oct_print(f, "\n");
    OCT_TRY(tool_print_rows(layers, all ? SIZE_MAX : WORST, column, OCT_COUNT(column), f, err));
    if (!all && n > WORST)
        oct_print(f, "%zu layers more: --layers lists all, --json has their numbers\n", n - WORST);
    tool_print_item(
        NULL,
        "differ: values of the layer that differ where both read the same, and by how many steps at most; in "
        "all: with what differs before it",
        f);
    return OCT_OK;
}

/* ---- time by layer ---- */

/* Of a time that varies widely no rate is said. */
static const char *rate_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const oct_item *x = oct_item_at(row, path);
    const double macs = oct_item_number(x, "macs"), ms = oct_item_number(x, "ms");
    snprintf(dst, TOOL_CELL, "%.1f", 2e-6 * macs / ms);
    return macs > 0 && ms > 0 && !oct_item_true(x, "wide") ? dst : "";
}

/* Nor what share of the peak it is. */
static const char *roof_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const oct_item *x = oct_item_at(row, path);
    return oct_item_true(x, "wide") ? "" : number_cell(dst, "%.0f %%", 100 * oct_item_number(x, "roof"));
}

static const char *faster_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return number_cell(dst, "%.2f", oct_item_number(row, path));
}

/* "9 more, 21 % of the time: -v lists all" */
static void print_others(const oct_item *list, const char *by, double sum, FILE *f)
{
    char share[TOOL_CELL];
    double all = 0;
    for (const oct_item *row = NULL; (row = oct_item_next(list, row));) {
        const double ms = oct_item_number(row, by);
        all += isnan(ms) ? 0 : ms;
    }
    const size_t n = oct_item_count(list, "");
    if (n > TOOL_LARGEST)
        oct_print(f, "%zu more, %s of the time: -v lists all, with kernels\n", n - TOOL_LARGEST,
                  all > 0 ? oct_fmt_percent(share, (all - sum) / all) : "an unknown part");
}

/* What takes longest, for a screen. */
static oct_status print_slowest(const oct_item *report, const oct_item *model, FILE *f, oct_err *err)
{
    static const tool_column layer[] = { { "layer", "name", NULL },          { "op", "op", NULL },
                                         { "scheme", "quant.scheme", NULL }, { "float", "float", time_cell },
                                         { "quant", "quant", time_cell },    { "faster", "faster", faster_cell } },
                             step[] = { { "step", "name", NULL },
                                        { "op", "op", NULL },
                                        { "scheme", "scheme", NULL },
                                        { "time", "", time_cell },
                                        { "share", "share", tool_share_cell } };
    const oct_item *costs = oct_item_at(model, "costs"), *steps = oct_item_at(model, "profile");
    double sum = 0;
    if (oct_item_count(costs, "")) {
        oct_print(f, "slowest layers of %s beside those of %s\n", name_of(model),
                  name_of(oct_item_at(report, "float")));
        OCT_TRY(tool_print_largest(costs, "quant.ms", layer, OCT_COUNT(layer), &sum, f, err));
        print_others(costs, "quant.ms", sum, f);
    } else if (oct_item_count(steps, "")) {
        oct_print(f, "\nslowest steps of %s\n", name_of(model));
        OCT_TRY(tool_print_largest(steps, "ms", step, OCT_COUNT(step), &sum, f, err));
        print_others(steps, "ms", sum, f);
    }
    return OCT_OK;
}

static oct_status print_costs(const oct_item *report, const oct_item *model, bool all, FILE *f, oct_err *err)
{
    static const tool_column column[] = { { "layer", "name", NULL },
                                          { "op", "op", NULL },
                                          { "scheme", "quant.scheme", NULL },
                                          { "float", "float", time_cell },
                                          { "GOP/s", "float", rate_cell },
                                          { "roof", "float", roof_cell },
                                          { "quant", "quant", time_cell },
                                          { "GOP/s", "quant", rate_cell },
                                          { "roof", "quant", roof_cell },
                                          { "faster", "faster", faster_cell },
                                          { "weights", "quant.weight_bytes", tool_bytes_cell },
                                          { "results", "quant.result_bytes", tool_bytes_cell } };
    const oct_item *costs = oct_item_at(model, "costs");
    const size_t n = oct_item_count(costs, "");
    if (!n)
        return OCT_OK;
    oct_print(f, "\nlayers of %s beside those of %s\n", name_of(model), name_of(oct_item_at(report, "float")));
    OCT_TRY(tool_print_rows(costs, all ? SIZE_MAX : PROFILE_ROWS, column, OCT_COUNT(column), f, err));
    if (!all && n > PROFILE_ROWS)
        oct_print(f, "%zu layers more: --layers lists all, --json has their numbers\n", n - PROFILE_ROWS);
    oct_buf b = OCT_BUF_INIT;
    oct_buf_printf(
        &b,
        "faster: float's time by quant's; weights and results: bytes of quant; ~: quartiles more than %.0f %% apart, "
        "nothing is concluded; roof: share of the shortest time by %.1f GOP/s float, %.1f GOP/s int8 (products of 512 "
        "x 512, measured here) and %.1f GB/s (copying in the cache)",
        100 * oct_scattered_spread, 2 * oct_item_number(report, "environment.peak.float_gmacs"),
        2 * oct_item_number(report, "environment.peak.int8_gmacs"), oct_item_number(report, "environment.peak.gbytes"));
    tool_print_item(NULL, oct_buf_str(&b), f);
    oct_buf_free(&b);
    return OCT_OK;
}

/* The steps of a model, then its arena and the lower bound of that. */
static oct_status print_steps(const oct_item *model, bool all, FILE *f, oct_err *err)
{
    static const tool_column column[] = { { "step", "name", NULL },
                                          { "op", "op", NULL },
                                          { "scheme", "scheme", NULL },
                                          { "time", "", time_cell },
                                          { "share", "share", tool_share_cell },
                                          { "GOP/s", "", rate_cell },
                                          { "roof", "", roof_cell },
                                          { "bytes", "bytes", tool_bytes_cell },
                                          { "algorithm", "algorithm", NULL },
                                          { "kernel", "kernel", NULL } };
    const oct_item *steps = oct_item_at(model, "profile");
    char arena[TOOL_CELL], live[TOOL_CELL];
    if (!oct_item_count(steps, ""))
        return OCT_OK;
    oct_print(f, "\nprofile of %s\n", name_of(model));
    OCT_TRY(tool_print_rows(steps, all ? SIZE_MAX : PROFILE_ROWS, column, OCT_COUNT(column), f, err));
    oct_print(f, "intermediate tensors: %s; at most %s of them are alive at once\n",
              tool_bytes_cell(arena, model, "arena_bytes"), tool_bytes_cell(live, model, "live_bytes"));
    return OCT_OK;
}

static oct_status print_sweep(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *sweep = oct_item_at(report, "sweep");
    const size_t n = oct_item_count(models_of(report), "");
    char title[24], cell[TOOL_CELL];
    bool any_unknown = false;
    if (!oct_item_count(sweep, ""))
        return OCT_OK;
    oct_table *t = oct_table_of("rr", (const char *[]){ "threads", "batch" });
    for (size_t k = 0; k < n; k++) {
        oct_table_column(t, title_of(title, k, n), OCT_RIGHT);
        if (k)
            oct_table_column(t, "speed", OCT_RIGHT);
    }
    for (const oct_item *c = NULL; (c = oct_item_next(sweep, c));) {
        const oct_item *of = oct_item_at(c, "models");
        oct_table_row(t);
        oct_table_cell(t, "%.0f", oct_item_number(c, "threads"));
        oct_table_cell(t, "%.0f", oct_item_number(c, "batch"));
        for (const oct_item *m = NULL; (m = oct_item_next(of, m));) {
            const oct_item *speed = oct_item_at(m, "speed");
            oct_table_cell(t, "%s", time_cell(cell, m, "latency_ms"));
            if (oct_item_at(speed, "median")) /* else nothing is concluded */
                oct_table_cell(t, "%.2f (%.2f to %.2f)", oct_item_number(speed, "median"), oct_item_number(speed, "q1"),
                               oct_item_number(speed, "q3"));
            else if (speed)
                oct_table_cell(t, "%s", "?");
            any_unknown |= speed && !oct_item_at(speed, "median");
        }
    }
    oct_print(f, "\nlatency of a sample by threads and samples at a time\n");
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (n > 1)
        oct_print(f, "speed: times float's, and for half of the pairs of runs%s\n",
                  any_unknown ? "; ?: the times are too few or vary too much" : "");
    return s;
}

/* ---- the whole ---- */

/* every: also what the verdict and the command line have said. */
static void print_head(const oct_item *report, bool every, FILE *f)
{
    const oct_item *models = models_of(report);
    const char *preprocess = oct_item_text(report, "preprocess");
    const int64_t samples = oct_item_whole(report, "samples"), bad = oct_item_whole(report, "bad_samples");
    char text[128], count[32], title[24];
    size_t i = 0, n = oct_item_count(models, "");
    every |= n < 2 || (n > 2 && !names_fit(report, f));
    for (const oct_item *k = NULL; every && (k = oct_item_next(models, k));)
        oct_print(f,
                  n == 2 && !i ? "%s %s, "
                  : n > 2 && i ? "%-8s %s\n"
                               : "%s %s\n",
                  title_of(title, i, n), oct_item_text(k, "path")),
            i++;
    if (every || bad)
        oct_print(f, "%s sample%s", oct_fmt_count(count, samples), samples == 1 ? "" : "s");
    if (bad)
        oct_print(f, ", %s broken and left out", oct_fmt_count(count, bad));
    if (every)
        oct_print(f, "; %s", preprocess && *preprocess ? preprocess : "no preprocessing");
    if (every || bad)
        oct_print(f, "\n");
    for (const oct_item *k = NULL; (k = oct_item_next(models, k));)
        if (oct_report_runner(text, sizeof text, k))
            oct_print(f, "%s %s\n", name_of(k), text);
    for (const oct_item *k = NULL; (k = oct_item_next(models, k));)
        if (oct_report_batch(text, sizeof text, report, k))
            oct_print(f, "%s %s\n", name_of(k), text);
    if (every)
        fputc('\n', f);
}

oct_status qeval_print(const oct_item *report, bool all_layers, bool steps, bool every, FILE *f, oct_err *err)
{
    const oct_item *models = models_of(report);
    const size_t n = oct_item_count(models, "");
    qeval_print_verdict(report, f);
    print_head(report, every, f);
    OCT_TRY(print_summary(report, every, f, err));
    print_drops(report, every, f);
    if (every)
        print_method(report, f);
    print_gates(report, every, f);
    if (!every && !all_layers && n > 1 && !oct_item_at(report, "gates"))
        oct_print(f, "\n");
    for (size_t k = 1; k < n; k++) {
        OCT_TRY(print_outputs(report, oct_item_of(models, k), every, f, err));
        if (all_layers || every)
            OCT_TRY(print_layers(report, oct_item_of(models, k), all_layers, !every && oct_term_width(f), f, err));
    }
    const bool brief = steps && !every && !all_layers && oct_term_width(f);
    if (!all_layers && !every && !brief)
        print_worst_layers(report, f);
    for (size_t k = 0; k < n; k++)
        OCT_TRY(print_device(report, oct_item_of(models, k), all_layers || every, f, err));
    for (size_t k = n > 1 ? 1 : 0; k < n; k++)
        OCT_TRY(qeval_print_classes(report, oct_item_of(models, k), f, err));
    OCT_TRY(print_sweep(report, f, err));
    for (size_t k = n > 1; brief && k < n; k++)
        OCT_TRY(print_slowest(report, oct_item_of(models, k), f, err));
    for (size_t k = 1; steps && !brief && k < n; k++)
        OCT_TRY(print_costs(report, oct_item_of(models, k), all_layers, f, err));
    for (size_t k = 0; steps && !brief && k < n; k++)
        OCT_TRY(print_steps(oct_item_of(models, k), all_layers || n == 1, f, err));
    if (oct_item_is_any(oct_item_at(report, "float.latency_ms")) || oct_item_at(report, "sweep") ||
        (steps && oct_item_at(oct_item_of(models, 0), "profile"))) {
        oct_print(f, every ? "\n" : "");
        tool_print_item("Machine", oct_item_text(report, "environment.text"), f);
    }
    tool_print_more(oct_item_at(report, "answer"), f);
    return OCT_OK;
}
