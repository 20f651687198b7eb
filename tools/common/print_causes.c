/* Prints the cost at the outputs of rounding each value and each layer, the worst first. */
#include "common/print_causes.h"

#include "cli/textfmt.h"
#include "common/print_answer.h"
#include "common/print_rows.h"

#include <math.h>
#include <string.h>

#define MUCH_LESS 0.5 /* dB: smaller differences are not mentioned */
enum { ROWS = 12, BAR = 20 };

static const char *layer_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const char *layer = oct_item_text(row, path);
    return layer && *layer ? layer : "(input)";
}

static const char *value_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const char *value = oct_item_text(row, path);
    return value ? value : oct_item_true(row, "whole") ? "(weights, inputs)" : "(weights)";
}

/* A bar for a share, with one character for each twentieth. */
static const char *bar_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    const int n = (int)(oct_item_number(row, path) * BAR + 0.5);
    memset(dst, '#', (size_t)n);
    dst[n] = '\0';
    return dst;
}

static const char *gain_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return isinf(oct_item_number(row, path)) ? "all" : tool_db_cell(dst, row, path);
}

static const char *db_of(char dst[32], const oct_item *x, const char *member)
{
    return oct_fmt_db(dst, oct_item_number(x, member));
}

oct_status tool_print_causes(const oct_item *x, bool every, FILE *f, oct_err *err)
{
    static const tool_column column[] = { { "layer", "layer", layer_cell, true }, { "op", "op", NULL },
                                          { "value", "value", value_cell, true }, { "share", "share", tool_share_cell },
                                          { "", "share", bar_cell, true },        { "alone", "sqnr_db", tool_db_cell },
                                          { "gain", "gain_db", gain_cell } };
    const oct_item *causes = oct_item_at(x, "causes");
    const int64_t samples = oct_item_whole(x, "samples"), small = oct_item_whole(x, "not_told_apart");
    const size_t n = oct_item_count(causes, "");
    char all[32], values[32], weights[32], sum[32];
    oct_buf b = OCT_BUF_INIT;
    if (samples == 0)
        return OCT_OK;
    oct_print(f, "\n");
    oct_buf_printf(
        &b,
        "What rounding costs at the outputs, each alone (%lld sample%s; together %s, all values %s, all weights %s):",
        (long long)samples, samples == 1 ? "" : "s", db_of(all, x, "all_db"), db_of(values, x, "values_db"),
        db_of(weights, x, "weights_db"));
    tool_print_item(NULL, oct_buf_str(&b), f);
    oct_buf_free(&b);
    OCT_TRY(tool_print_rows(causes, every ? SIZE_MAX : ROWS, column, OCT_COUNT(column), f, err));
    if (!every && n > ROWS)
        oct_print(f, "  and %zu more (-v shows them)\n", n - ROWS);
    if (small)
        oct_buf_printf(&b, "%lld cause less than %.0f %% of the noise of all values, or of all weights. ",
                       (long long)small, 100 * oct_item_number(x, "least_share"));
    oct_buf_puts(&b, "alone: the outputs if nothing else were rounded; share: of what all of them cost, each alone; "
                     "gain: about what leaving it float alone would gain");
    if (oct_item_number(x, "sum_db") < oct_item_number(x, "all_db") - MUCH_LESS)
        oct_buf_printf(&b, ". Independent errors would leave the outputs %s: some make up for others",
                       db_of(sum, x, "sum_db"));
    tool_print_item(NULL, oct_buf_str(&b), f);
    oct_buf_free(&b);
    return OCT_OK;
}
