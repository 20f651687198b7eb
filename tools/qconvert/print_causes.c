/* What rounding each value and each layer costs at the outputs, worst first. */
#include "qconvert/qconvert.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <string.h>

enum { ROWS = 16, BAR = 20 };

/* Characters of a share, one for a twentieth; a share may be above 1 where errors are not independent. */
static const char *bar_text(char dst[BAR + 1], double share)
{
    const int n = share >= 1 ? BAR : (int)(share * BAR + 0.5);
    memset(dst, '#', (size_t)n);
    dst[n] = '\0';
    return dst;
}

static void cause_row(oct_table *t, const oct_cause *x)
{
    char bar[BAR + 1], alone[32], gain[32], share[32];
    snprintf(share, sizeof share, "%.1f %%", 100 * x->share);
    oct_table_texts(t, (const char *[]){ *x->layer ? x->layer : "(input)", x->op, x->value ? x->value : "(weights)", share, bar_text(bar, x->share),
                                         oct_fmt_db(alone, x->sqnr), isinf(x->gain) ? "all" : oct_fmt_db(gain, x->gain) });
}

static void print_head(const oct_causes *x, FILE *f)
{
    char all[32], values[32], weights[32];
    oct_print(f, "\nWhat rounding costs at the outputs, each alone (%zu sample%s; together %s, all values %s, all weights %s):\n", x->samples,
              x->samples == 1 ? "" : "s", oct_fmt_db(all, x->all), oct_fmt_db(values, x->of_values), oct_fmt_db(weights, x->of_weights));
}

oct_status causes_print(const session *s, FILE *f, oct_err *err)
{
    const oct_causes *x = &s->c.causes;
    if (!s->c.o.sensitivity || x->samples == 0)
        return OCT_OK;
    print_head(x, f);
    const size_t shown = s->cli->verbose || x->n < ROWS ? x->n : ROWS;
    oct_table *t = oct_table_of("lllrlrr", (const char *[]){ "layer", "op", "value", "share", "", "alone", "gain" });
    for (size_t i = 0; i < shown; i++)
        cause_row(t, &x->cause[i]);
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (shown < x->n)
        oct_print(f, "  and %zu more (-v shows them)\n", x->n - shown);
    if (x->small)
        oct_print(f, "  %zu cause less than %.0f %% of the noise of all values, or of all weights, and were not told apart\n", x->small, 100 * x->least);
    fputs("  gain: about what leaving it float alone would gain\n", f);
    return st;
}

static void decibels(oct_json *j, const char *key, double v)
{
    if (!isnan(v))
        oct_json_num(j, key, v); /* null: nothing is lost */
}

void causes_json(oct_json *j, const oct_causes *x)
{
    if (x->samples == 0)
        return;
    oct_json_open(j, "sensitivity", '{');
    oct_json_int(j, "samples", (int64_t)x->samples);
    decibels(j, "all_db", x->all);
    decibels(j, "values_db", x->of_values);
    decibels(j, "weights_db", x->of_weights);
    oct_json_bool(j, "weights_measured", x->weights);
    oct_json_num(j, "least_share", x->least);
    oct_json_int(j, "not_told_apart", (int64_t)x->small);
    oct_json_open(j, "causes", '[');
    for (size_t i = 0; i < x->n; i++) {
        const oct_cause *c = &x->cause[i];
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "layer", c->layer);
        oct_json_str(j, "op", c->op);
        oct_json_str(j, "value", c->value);
        oct_json_num(j, "share", c->share);
        oct_json_num(j, "sqnr_db", c->sqnr);
        oct_json_num(j, "gain_db", c->gain);
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_json_close(j);
}
