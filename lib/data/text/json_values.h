/* lib/data/text/json_values.h -- a sample as a line of JSON: {"age": 41.5, "city": "Bern", "pixels": [[0, 1], [2, 3]]}.
 * Private to lib/data. */
#ifndef OCT_DATA_JSON_VALUES_H
#define OCT_DATA_JSON_VALUES_H

#include "data/readers/readers.h"

/* Reads t[n], which has a member for each input: a number, a text, true, false, null for NaN, or nested lists of these,
 * with or without the dimension of the batch. One of a single element may stand without its list. A member `label` is
 * the label. OCT_EMALFORMED: an input without a member, lists of different lengths, elements of different kinds. */
oct_status oct_json_values(const oct_feed_ctx *ctx, const char *t, size_t n, oct_item *item, oct_err *err);

#endif
