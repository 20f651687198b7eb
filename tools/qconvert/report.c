/* The report as text: layers, what stayed float and why, what passes changed, and a summary in one sentence. */
#include "qconvert/qconvert.h"

#include "common/print_causes.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_BELOW = 24, WORST = 8, REASONS = 12, MAX_NOTES = 64, WRAP = 100 };

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

static const char *db(char dst[32], double v)
{
    if (isnan(v))
        return "";
    if (isinf(v))
        return v > 0 ? "exact" : "-";
    snprintf(dst, 32, "%.1f", v);
    return dst;
}

static const char *type_name(oct_dtype t)
{
    static const char *const names[] = { [OCT_UNDEFINED] = "", [OCT_S8] = "s8",   [OCT_U8] = "u8",    [OCT_S4] = "s4",
                                         [OCT_U4] = "u4",      [OCT_F16] = "f16", [OCT_BF16] = "bf16" };
    return (size_t)t < OCT_COUNT(names) && names[t] ? names[t] : oct_dtype_name(t);
}

/* "s8/ch", "u4/32". */
static const char *weights_cell(char dst[32], const oct_layer_decision *d)
{
    if (d->block)
        snprintf(dst, 32, "%s/%d", type_name(d->weights), d->block);
    else
        snprintf(dst, 32, "%s%s", type_name(d->weights), d->weights && d->per_channel ? "/ch" : "");
    return dst;
}

static void layer_row(oct_table *t, const oct_layer *l, bool with_loss, notes *all)
{
    const oct_layer_decision *d = &l->d;
    char weights[32], scale[32] = "", zero[32] = "", of_weights[32], of_output[32], loss[32] = "", number[32] = "";
    const size_t why = note(all, d->remedy ? d->remedy : d->why);
    if (d->scale != 0) {
        snprintf(scale, sizeof scale, "%.4g", (double)d->scale);
        snprintf(zero, sizeof zero, "%d", (int)d->zero_point);
    }
    if (why)
        snprintf(number, sizeof number, "%zu", why);
    if (l->loss > 0)
        snprintf(loss, sizeof loss, "%.0f %%", 100 * l->loss);
    const char *cells[] = {
        l->name, d->op,       oct_scheme_name(d->scheme),      weights_cell(weights, d),      scale,
        zero,    d->observer, db(of_weights, d->sqnr_weights), db(of_output, d->sqnr_output), with_loss ? loss : number,
        number
    };
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

static double worth(const oct_layer *l)
{
    double w = isnan(l->d.sqnr_weights) ? INFINITY : l->d.sqnr_weights,
           o = isnan(l->d.sqnr_output) ? INFINITY : l->d.sqnr_output;
    return w < o ? w : o;
}

/* Sorts layers: first those that cause most of the loss, if that is known; then those with the lowest SQNR. */
static int by_worth(const void *a, const void *b)
{
    const oct_layer *x = *(const oct_layer *const *)a, *y = *(const oct_layer *const *)b;
    if (x->loss != y->loss)
        return x->loss > y->loss ? -1 : 1;
    double p = worth(x), q = worth(y);
    return p < q ? -1 : p > q ? 1 : x < y ? -1 : x > y;
}

/* Prints all layers, or the worst ones if there are many. */
static oct_status print_layers(const session *s, FILE *f, oct_err *err)
{
    const bool whole = s->c.n_layers <= ALL_BELOW || s->cli->verbose || s->a->dry_run;
    const oct_layer **order = oct_calloc(s->c.n_layers + 1, sizeof *order);
    if (!order)
        return oct_nomem(err);
    size_t n = 0;
    for (size_t i = 0; i < s->c.n_layers; i++)
        if (whole ||
            (oct_layer_is_quantized(&s->c.layers[i]) && (s->c.layers[i].loss > 0 || isfinite(worth(&s->c.layers[i])))))
            order[n++] = &s->c.layers[i];
    if (!whole)
        qsort(order, n, sizeof *order, by_worth);
    oct_status st = OCT_OK;
    if (n || whole) {
        notes all = { .n = 0 };
        const bool loss = s->c.causes.n > 0;
        oct_table *t = oct_table_of(loss ? "llllrrlrrrr" : "llllrrlrrr",
                                    (const char *[]){ "layer", "op", "scheme", "weights", "scale", "zero", "observer",
                                                      "w dB", "out dB", loss ? "loss" : "note", "note" });
        const size_t shown = whole || n < WORST ? n : WORST;
        for (size_t i = 0; i < shown; i++)
            layer_row(t, order[i], loss, &all);
        if (!whole)
            oct_print(f, "%zu of %zu nodes, those %s (-v shows all):\n", shown, s->c.n_layers,
                      loss ? "that cause most of the loss at the outputs" : "with the lowest SQNR");
        st = finish_table(t, &all, f, err);
        if (loss)
            oct_print(f,
                      "  loss: share of the error at the model's outputs that rounding the layer's %s alone causes\n",
                      s->c.causes.weights ? "output or weights" : "output");
    }
    oct_free(order);
    return st;
}

/* How many layers stayed float with the operator and the reason of l. *first: no earlier layer did. */
static size_t count_alike(const session *s, const oct_layer *l, bool *first)
{
    size_t n = 0;
    *first = true;
    for (size_t k = 0; k < s->c.n_layers; k++) {
        const oct_layer *o = &s->c.layers[k];
        if (oct_layer_is_quantized(o) || strcmp(o->d.op, l->d.op) != 0 || strcmp(o->d.why, l->d.why) != 0)
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
static void print_float(const session *s, FILE *f)
{
    size_t lines = 0, hidden = 0;
    for (size_t i = 0; i < s->c.n_layers; i++) {
        const oct_layer *l = &s->c.layers[i];
        bool first;
        const size_t n = oct_layer_is_quantized(l) ? 0 : count_alike(s, l, &first);
        if (!n || !first)
            continue;
        if (lines++ >= REASONS && !s->cli->verbose) {
            hidden++;
            continue;
        }
        fputs(lines == 1 ? "\nStayed float:\n" : "", f);
        oct_print(f, "  %zu %s (%s%s): %s\n", n, l->d.op, l->name, n > 1 ? ", ..." : "", l->d.why);
    }
    if (hidden)
        oct_print(f, "  and %zu more reasons (-v shows them)\n", hidden);
}

/* Prints layers with denormal weights, and how these are written. */
static void print_denormals(const session *s, FILE *f)
{
    uint64_t n = 0, of = 0, zeros = 0;
    for (size_t i = 0; i < s->c.n_denormal; i++) {
        const oct_layer_denormals *d = &s->c.denormal[i];
        n += d->n;
        of += d->of;
        zeros += d->zeros ? d->n : 0;
    }
    if (!n)
        return;
    oct_print(f, "\nDenormal weights, with which many CPUs are slow: %llu of %llu, %llu of them written as zeros\n",
              (unsigned long long)n, (unsigned long long)of, (unsigned long long)zeros);
    for (size_t i = 0; i < s->c.n_denormal; i++) {
        const oct_layer_denormals *d = &s->c.denormal[i];
        if (i < REASONS || s->cli->verbose)
            oct_print(f, "  %s (%s): %llu of %llu%s\n", d->layer, d->op, (unsigned long long)d->n,
                      (unsigned long long)d->of, d->zeros ? "" : ", which stay, as the layer does");
    }
    if (s->c.n_denormal > REASONS && !s->cli->verbose)
        oct_print(f, "  and %zu more layers (-v shows them)\n", s->c.n_denormal - REASONS);
}

static void print_changes(const session *s, FILE *f)
{
    fputs(s->c.n_changes ? "\nChanged before quantizing:\n" : "", f);
    for (size_t i = 0; i < s->c.n_changes; i++) {
        const oct_change *c = &s->c.changes[i];
        size_t n = 0;
        bool first = true;
        for (size_t k = 0; k < s->c.n_changes; k++)
            if (strcmp(s->c.changes[k].pass, c->pass) == 0 && strcmp(s->c.changes[k].what, c->what) == 0) {
                first &= k >= i;
                n++;
            }
        if (s->cli->verbose || n == 1)
            oct_print(f, "  %s: %s%s%s\n", c->pass, c->what, *c->node ? " in " : "", c->node);
        else if (first)
            oct_print(f, "  %s: %zu times %s\n", c->pass, n, c->what);
    }
}

/* Prints what methods did, and with -v why others did not run. */
static void print_methods(const session *s, FILE *f)
{
    size_t lines = 0;
    for (size_t i = 0; i < s->c.n_methods; i++) {
        const oct_method_result *r = &s->c.methods[i];
        oct_buf text = OCT_BUF_INIT;
        if (!r->ran && !s->cli->verbose)
            continue;
        if (lines++ == 0)
            fputs("\nMethods, measured on samples that calibrate:\n", f);
        if (r->ran)
            oct_method_text(r, &text);
        else
            oct_buf_printf(&text, "not used: %s", r->why);
        oct_print(f, "  %s: %s\n", r->method->name, oct_buf_str(&text));
        oct_buf_free(&text);
    }
}

/* ---- the summary ---- */

/* "Softmax by op:Softmax (built-in:8)", for the first few kinds of layers that stayed float although they have weights,
 * or because of a rule. */
static void float_clause(const session *s, oct_buf *b)
{
    size_t shown = 0;
    for (size_t i = 0; i < s->c.n_layers && shown < 3; i++) {
        const oct_layer *l = &s->c.layers[i];
        bool ruled = oct_policy_place(l->d.why) != NULL;
        bool first;
        if (oct_layer_is_quantized(l) || !(l->product || ruled) || !count_alike(s, l, &first) || !first)
            continue;
        oct_buf_printf(b, "%s%s %s %s", shown ? ", " : "; float: ", l->d.op, ruled ? "by the rule" : "because",
                       l->d.why);
        shown++;
    }
}

static void size_clause(const session *s, oct_buf *b)
{
    char before[32], after[32];
    double ratio = (double)s->c.size_before / (double)(s->c.size_after ? s->c.size_after : 1);
    oct_buf_printf(b, "%s %s ", tool_base(s->output), s->a->dry_run ? "would be" : "is");
    if (fabs(ratio - 1) < 0.005)
        oct_buf_puts(b, "about as large as");
    else
        oct_buf_printf(b, "%.2f times %s than", ratio < 1 ? 1 / ratio : ratio, ratio < 1 ? "larger" : "smaller");
    oct_buf_printf(b, " %s (%s to %s)", tool_base(s->a->model), oct_fmt_bytes(before, s->c.size_before),
                   oct_fmt_bytes(after, s->c.size_after));
}

/* "5 of 6 layers with weights are int8"; weights in blocks are distinguished by their bits. */
static void layers_clause(const session *s, oct_buf *b)
{
    const oct_layer_count n = oct_layers_count(s->c.layers, s->c.n_layers);
    const struct {
        size_t n;
        const char *are;
    } kinds[] = { { n.integer, "are int8" },
                  { n.half, "are 16-bit floats" },
                  { n.blocks4, "have them in 4 bits" },
                  { n.blocks8, "have them in 8 bits" } };
    const bool none =
        n.products && !(n.half + n.blocks4 + n.blocks8); /* no layer of another kind: then int8 is named in any case */
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (kinds[i].n || (i == 0 && none))
            oct_buf_printf(b, "; %zu of %zu layers with weights %s", kinds[i].n, n.products, kinds[i].are);
}

static void print_sentence(const session *s, FILE *f)
{
    oct_buf b = OCT_BUF_INIT;
    size_clause(s, &b);
    layers_clause(s, &b);
    if (s->c.n_floats) {
        oct_buf_puts(&b, "; ");
        oct_float_bytes_text(s->c.floats, s->c.n_floats, &b);
    }
    verdict_clause(s, &b);
    if (oct_conversion_no_gain(&s->c))
        oct_buf_printf(&b, "; %s", oct_conversion_no_gain(&s->c));
    float_clause(s, &b);
    oct_buf_puts(&b, ".");
    int width = oct_term_width(f);
    fputs("\n", f);
    oct_print_wrapped(f, oct_buf_str(&b), width > 40 && width < WRAP ? width : WRAP);
    oct_buf_free(&b);
}

oct_status report_print(const session *s, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    OCT_TRY(print_layers(s, f, err));
    print_float(s, f);
    print_denormals(s, f);
    print_changes(s, f);
    print_methods(s, f);
    OCT_TRY(size_report_print(s, f, err));
    OCT_TRY(times_report_print(s, f, err));
    if (s->c.o.sensitivity)
        OCT_TRY(tool_print_causes(&s->c.causes, s->cli->verbose, f, err));
    print_sentence(s, f);
    if (s->a->calib && oct_methods_any_needing(&s->c.o.methods, OCT_NEEDS_SAMPLES))
        fputs("From a table alone nothing could be measured; --data also finds which ranges and biases lose least.\n",
              f);
    return OCT_OK;
}
