/* Prints the cost at the outputs of rounding each value and each layer, the worst first. */
#include "common/print_causes.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <string.h>

#define MUCH_LESS 0.5 /* dB: smaller differences are not mentioned */
enum { ROWS = 16, BAR = 20 };

/* A bar for a share, with one character for each twentieth. */
static const char *bar_text(char dst[BAR + 1], double share)
{
    const int n = (int)(share * BAR + 0.5);
    memset(dst, '#', (size_t)n);
    dst[n] = '\0';
    return dst;
}

static void cause_row(oct_table *t, const oct_cause *x)
{
    char bar[BAR + 1], alone[32], gain[32], share[32];
    snprintf(share, sizeof share, "%.1f %%", 100 * x->share);
    oct_table_texts(t, (const char *[]){ *x->layer ? x->layer : "(input)", x->op, x->value ? x->value : "(weights)",
                                         share, bar_text(bar, x->share), oct_fmt_db(alone, x->sqnr),
                                         isinf(x->gain) ? "all" : oct_fmt_db(gain, x->gain) });
}

static void print_head(const oct_causes *x, FILE *f)
{
    char all[32], values[32], weights[32];
    oct_print(
        f,
        "\nWhat rounding costs at the outputs, each alone (%zu sample%s; together %s, all values %s, all weights %s):\n",
        x->samples, x->samples == 1 ? "" : "s", oct_fmt_db(all, x->all), oct_fmt_db(values, x->of_values),
        oct_fmt_db(weights, x->of_weights));
}

oct_status tool_print_causes(const oct_causes *x, bool every, FILE *f, oct_err *err)
{
    if (x->samples == 0)
        return OCT_OK;
    char sum[32];
    print_head(x, f);
    const size_t shown = every || x->n < ROWS ? x->n : ROWS;
    oct_table *t = oct_table_of("lllrlrr", (const char *[]){ "layer", "op", "value", "share", "", "alone", "gain" });
    for (size_t i = 0; i < shown; i++)
        cause_row(t, &x->cause[i]);
    oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (shown < x->n)
        oct_print(f, "  and %zu more (-v shows them)\n", x->n - shown);
    if (x->small)
        oct_print(
            f, "  %zu cause less than %.0f %% of the noise of all values, or of all weights, and were not told apart\n",
            x->small, 100 * x->least);
    fputs(
        "  alone: the outputs if nothing else were rounded; share: of what all of them cost, each alone; gain: about what leaving it float alone would gain\n",
        f);
    if (x->sum < x->all - MUCH_LESS)
        oct_print(
            f,
            "  independent errors would leave the outputs %s: some make up for others, as a bias does for what is rounded before it\n",
            oct_fmt_db(sum, x->sum));
    return st;
}

static void decibels(oct_json *j, const char *key, double v)
{
    if (!isnan(v))
        oct_json_num(j, key, v); /* null: nothing is lost */
}

static void put_cause(oct_json *j, const void *row)
{
    const oct_cause *c = row;
    oct_json_str(j, "layer", c->layer);
    oct_json_str(j, "op", c->op);
    oct_json_str(j, "value", c->value);
    oct_json_num(j, "share", c->share);
    oct_json_num(j, "sqnr_db", c->sqnr);
    oct_json_num(j, "gain_db", c->gain);
}

void tool_json_causes(oct_json *j, const oct_causes *x)
{
    if (x->samples == 0)
        return;
    oct_json_open(j, "sensitivity", '{');
    oct_json_int(j, "samples", (int64_t)x->samples);
    decibels(j, "all_db", x->all);
    decibels(j, "sum_db", x->sum);
    decibels(j, "values_db", x->of_values);
    decibels(j, "weights_db", x->of_weights);
    oct_json_bool(j, "weights_measured", x->weights);
    oct_json_num(j, "least_share", x->least);
    oct_json_int(j, "not_told_apart", (int64_t)x->small);
    oct_json_rows(j, "causes", x->cause, x->n, sizeof *x->cause, put_cause);
    oct_json_close(j);
}
