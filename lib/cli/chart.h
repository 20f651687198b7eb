/* lib/cli/chart.h -- sparklines for the terminal (`qcalib show`). */
#ifndef OCT_CLI_CHART_H
#define OCT_CLI_CHART_H

#include "base/buf.h"

/* Appends one line of `columns` marks for count[n], each with the sum of the counts in its range, as a height relative
 * to the highest: eight heights with utf8, else " .:-=+*#". A count above 0 always shows. With log, heights go by the
 * logarithm: tails of a histogram stay visible. n < columns gives n marks. */
void oct_chart_spark(oct_buf *b, const uint64_t *count, size_t n, int columns, bool log, bool utf8);

#endif
