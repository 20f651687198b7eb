/* lib/cli/chart.h -- bars and sparklines for the terminal (`qcalib show`). */
#ifndef OCT_CLI_CHART_H
#define OCT_CLI_CHART_H

#include "base/buf.h"

/* Appends a bar of value / max of `columns` columns, in eighths of a column with utf8, else in '#'.
 * A value above 0 shows at least the smallest mark; the rest is not padded. Negative and NaN count as 0,
 * values beyond max as max. */
void oct_chart_bar(oct_buf *b, double value, double max, int columns, bool utf8);

/* Appends one line of `columns` marks for count[n], each the sum of the counts that fall into it, its
 * height by its share of the highest: eight heights with utf8, else " .:-=+*#". A count above 0 always
 * shows. With log, heights go by the logarithm: tails of a histogram stay visible.
 * n < columns gives n marks. */
void oct_chart_spark(oct_buf *b, const uint64_t *count, size_t n, int columns, bool log, bool utf8);

#endif
