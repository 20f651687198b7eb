/* The report as text: layers, what stayed float and why, what passes changed, and a summary in one sentence. */
#include "qconvert/qconvert.h"

#include "common/print_answer.h"
#include "common/print_causes.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <string.h>

enum { MAX_NOTES = 64 };

/* Reasons are long and few. So rows have the number of a reason, and a legend follows the table. */
typedef struct notes {
    const char *text[MAX_NOTES];
    size_t n;
} notes;

/* The number of a reason, from 1; 0: there is none, or there are too many. */
static size_t note(notes *all, const char *text)
{
    if (!text || !*text)
        return 0;
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->text[i], text) == 0)
            return i + 1;
    if (all->n == MAX_NOTES)
        return 0;
    all->text[all->n++] = text;
    return all->n;
}

static const char *db(char dst[32], const oct_item *layer, const char *member)
{
    const double v = oct_item_number(layer, member);
    if (isnan(v))
        return "";
    if (isinf(v))
        return v > 0 ? "exact" : "-";
    snprintf(dst, 32, "%.1f", v);
    return dst;
}

/* "s8/ch", "u4/32". */
static const char *weights_cell(char dst[32], const oct_item *layer)
{
    static const char *const names[][2] = { { "int8", "s8" },  { "uint8", "u8" },    { "int4", "s4" },
                                            { "uint4", "u4" }, { "float16", "f16" }, { "bfloat16", "bf16" } };
    const char *type = oct_item_text(layer, "weights");
    if (!type)
        return "";
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(type, names[i][0]) == 0) {
            type = names[i][1];
            break;
        }
    if (oct_item_at(layer, "block"))
        snprintf(dst, 32, "%s/%.0f", type, oct_item_number(layer, "block"));
    else
        snprintf(dst, 32, "%s%s", type, oct_item_true(layer, "per_channel") ? "/ch" : "");
    return dst;
}

static void layer_row(oct_table *t, const oct_item *l, bool with_loss, notes *all)
{
    char weights[32], scale[32] = "", zero[32] = "", of_weights[32], of_output[32], loss[32] = "", number[32] = "";
    const char *remedy = oct_item_text(l, "remedy");
    const size_t why = note(all, remedy ? remedy : oct_item_text(l, "why"));
    if (oct_item_at(l, "scale")) {
        snprintf(scale, sizeof scale, "%.4g", oct_item_number(l, "scale"));
        snprintf(zero, sizeof zero, "%.0f", oct_item_number(l, "zero_point"));
    }
    if (why)
        snprintf(number, sizeof number, "%zu", why);
    if (oct_item_at(l, "loss_share"))
        snprintf(loss, sizeof loss, "%.0f %%", 100 * oct_item_number(l, "loss_share"));
    const char *cells[] = { oct_item_text(l, "name"),
                            oct_item_text(l, "op"),
                            oct_item_text(l, "scheme"),
                            weights_cell(weights, l),
                            scale,
                            zero,
                            oct_item_text(l, "observer"),
                            db(of_weights, l, "sqnr_weights_db"),
                            db(of_output, l, "sqnr_output_db"),
                            with_loss ? loss : number,
                            number };
    oct_table_texts(t, cells);
}

/* Prints the table and destroys it. */
static oct_status finish_table(oct_table *t, const notes *all, FILE *f, oct_err *err)
{
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    for (size_t i = 0; i < all->n; i++) {
        fputs(i ? "" : "\n", f);
        oct_print(f, "%3zu  %s\n", i + 1, all->text[i]);
    }
    if (all->n)
        fputs("  dB: signal to rounding noise, of the weights (w) and of the quantized output (out)\n", f);
    return st;
}

static bool is_quantized(const oct_item *layer)
{
    return strcmp(oct_item_text(layer, "scheme"), "float") != 0;
}

static oct_status print_layers(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *layers = oct_item_at(report, "layers"), *causes = oct_item_at(report, "sensitivity");
    const bool loss = oct_item_count(causes, "causes");
    notes all = { .n = 0 };
    oct_table *t = oct_table_of(loss ? "llllrrlrrrr" : "llllrrlrrr",
                                (const char *[]){ "layer", "op", "scheme", "weights", "scale", "zero", "observer",
                                                  "w dB", "out dB", loss ? "loss" : "note", "note" });
    for (const oct_item *l = NULL; (l = oct_item_next(layers, l));)
        layer_row(t, l, loss, &all);
    oct_print(f, "\n");
    OCT_TRY(finish_table(t, &all, f, err));
    if (loss)
        oct_print(f, "  loss: share of the error at the model's outputs that rounding the layer's %s alone causes\n",
                  oct_item_true(causes, "weights_measured") ? "output or weights" : "output");
    return OCT_OK;
}

/* How many layers stayed float with the operator and the reason of l. *first: no earlier layer did. */
static size_t count_alike(const oct_item *layers, const oct_item *l, bool *first)
{
    size_t n = 0;
    *first = true;
    for (const oct_item *o = NULL; (o = oct_item_next(layers, o));) {
        if (is_quantized(o) || strcmp(oct_item_text(o, "op"), oct_item_text(l, "op")) != 0 ||
            strcmp(oct_item_text(o, "why"), oct_item_text(l, "why")) != 0)
            continue;
        if (o < l) { /* that one counts them */
            *first = false;
            return 1;
        }
        n++;
    }
    return n;
}

/* Prints "3 Softmax (/a/softmax, ...): op:Softmax (built-in:8)", one line for each reason and operator. */
static void print_float(const oct_item *report, FILE *f)
{
    const oct_item *layers = oct_item_at(report, "layers");
    size_t lines = 0;
    for (const oct_item *l = NULL; (l = oct_item_next(layers, l));) {
        bool first;
        const size_t n = is_quantized(l) ? 0 : count_alike(layers, l, &first);
        if (!n || !first)
            continue;
        fputs(lines == 0 ? "\nStayed float:\n" : "", f);
        lines++;
        oct_print(f, "  %zu %s (%s%s): %s\n", n, oct_item_text(l, "op"), oct_item_text(l, "name"), n > 1 ? ", ..." : "",
                  oct_item_text(l, "why"));
    }
}

/* Prints layers with denormal weights, and how these are written. */
static void print_denormals(const oct_item *report, FILE *f)
{
    const oct_item *layers = oct_item_at(report, "denormal_weights");
    double n = 0, of = 0, zeros = 0;
    for (const oct_item *d = NULL; (d = oct_item_next(layers, d));) {
        n += oct_item_number(d, "denormal");
        of += oct_item_number(d, "weights");
        zeros += oct_item_true(d, "zeros") ? oct_item_number(d, "denormal") : 0;
    }
    if (!(n > 0))
        return;
    oct_print(f, "\nDenormal weights, with which many CPUs are slow: %.0f of %.0f, %.0f of them written as zeros\n", n,
              of, zeros);
    for (const oct_item *d = NULL; (d = oct_item_next(layers, d));)
        oct_print(f, "  %s (%s): %.0f of %.0f%s\n", oct_item_text(d, "layer"), oct_item_text(d, "op"),
                  oct_item_number(d, "denormal"), oct_item_number(d, "weights"),
                  oct_item_true(d, "zeros") ? "" : ", which stay, as the layer does");
}

/* Inputs, outputs and operators, before and after. */
static oct_status print_graph(const oct_item *report, FILE *f, oct_err *err)
{
    oct_table *t = oct_table_of("llll", (const char *[]){ "", "", "before", "after" });
    const oct_item *rows = oct_item_at(report, "graph");
    for (const oct_item *r = NULL; (r = oct_item_next(rows, r));) {
        char before[32], after[32];
        snprintf(before, sizeof before, "%lld", (long long)oct_item_whole(r, "before"));
        snprintf(after, sizeof after, "%lld", (long long)oct_item_whole(r, "after"));
        const bool node = strcmp(oct_item_text(r, "what"), "operator") == 0;
        const char *was = oct_item_text(r, "before"), *is = oct_item_text(r, "after");
        oct_table_texts(t, (const char *[]){ oct_item_text(r, "what"), oct_item_text(r, "name"),
                                             node  ? before
                                             : was ? was
                                                   : "",
                                             node ? after
                                             : is ? is
                                                  : "" });
    }
    oct_print(f, "\n");
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static void print_changes(const oct_item *report, FILE *f)
{
    const oct_item *passes = oct_item_at(report, "passes");
    if (oct_item_count(passes, ""))
        fputs("\nChanged before quantizing:\n", f);
    for (const oct_item *c = NULL; (c = oct_item_next(passes, c));) {
        const char *node = oct_item_text(c, "node");
        oct_print(f, "  %s: %s%s%s\n", oct_item_text(c, "pass"), oct_item_text(c, "change"), *node ? " in " : "", node);
    }
}

/* Prints what methods did, and why others did not run. */
static void print_methods(const oct_item *report, FILE *f)
{
    const oct_item *methods = oct_item_at(report, "methods");
    size_t lines = 0;
    for (const oct_item *m = NULL; (m = oct_item_next(methods, m));) {
        const bool ran = oct_item_true(m, "ran");
        if (lines++ == 0)
            fputs("\nMethods, measured on samples that calibrate:\n", f);
        oct_print(f, ran ? "  %s: %s\n" : "  %s: not used: %s\n", oct_item_text(m, "name"),
                  oct_item_text(m, ran ? "text" : "why"));
    }
}

/* Prints what a run without --dry-run takes. */
static void print_estimate(const oct_item *report, FILE *f)
{
    char seconds[32], memory[32];
    if (oct_item_at(report, "estimate"))
        oct_print(f, "Takes     about %s and %s of memory here, to convert.\n",
                  oct_fmt_seconds(seconds, oct_item_number(report, "estimate.seconds")),
                  oct_fmt_bytes(memory, (uint64_t)oct_item_whole(report, "estimate.memory_bytes")));
}

/* Prints the result of the trials. */
static void print_trials(const oct_item *report, FILE *f)
{
    const oct_item *trials = oct_item_at(report, "trials"), *t = oct_item_next(trials, NULL);
    const size_t n = oct_item_count(trials, "");
    const bool stopped = oct_item_true(report, "stopped_by_time_limit");
    if (n < 2 && !stopped)
        return;
    while (t && !oct_item_true(t, "taken"))
        t = oct_item_next(trials, t);
    oct_buf b = OCT_BUF_INIT;
    oct_buf_printf(&b, "%zu%s: %s; ", n - 1, stopped ? ", then the time limit ended them" : "",
                   oct_item_text(t, "text"));
    oct_buf_printf(&b,
                   oct_item_true(report, "trials_on_other_samples")
                       ? "%lld samples chose, others judge."
                       : "the samples that judge also chose (too few to decide in halves).",
                   (long long)oct_item_whole(t, "samples"));
    tool_print_item("Trials", oct_buf_str(&b), f);
    oct_buf_free(&b);
}

/* The layers, what stayed float, what changed and what methods did. */
static oct_status print_tables(const session *s, const oct_item *report, FILE *f, oct_err *err)
{
    OCT_TRY(print_layers(report, f, err));
    print_float(report, f);
    print_denormals(report, f);
    print_changes(report, f);
    OCT_TRY(print_graph(report, f, err));
    print_methods(report, f);
    OCT_TRY(size_report_print(report, f, err));
    OCT_TRY(times_report_print(report, f, err));
    if (s->a->x.sensitivity || s->a->x.sensitivity_file)
        OCT_TRY(tool_print_causes(oct_item_at(report, "sensitivity"), true, f, err));
    return OCT_OK;
}

oct_status report_print(const session *s, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    tool_print_answer(oct_item_at(report, "answer"), f);
    print_trials(report, f);
    if (!s->cli->verbose && (s->a->x.sensitivity || s->a->x.sensitivity_file))
        OCT_TRY(tool_print_causes(oct_item_at(report, "sensitivity"), false, f, err));
    if (oct_session_lacks_samples(s->of))
        tool_print_item(
            "Ranges",
            "They come from a table alone, so nothing could be measured; --data also finds which ranges and biases lose least.",
            f);
    print_estimate(report, f);
    return s->cli->verbose ? print_tables(s, report, f, err) : OCT_OK;
}
