/* lib/data/readers/value_table.h -- a CSV of values: a row is a sample, and its fields are the features. Private to
 * lib/data.
 */
#ifndef OCT_DATA_VALUE_TABLE_H
#define OCT_DATA_VALUE_TABLE_H

#include "data/arrays/csv.h"
#include "data/readers/readers.h"

/* Which columns feed the inputs if an open CSV holds values: for each input the first of its columns, from[i], and how
 * many of them, n[i]. An input of one element in each sample takes the column of its name; of a single input that takes
 * a row of features, these are all columns but `label`, in their order, if none is called like the input or `file`.
 * False: the fields are names of files. An input of strings always takes values, and one of numbers takes them where
 * the first row has a number or nothing. */
bool oct_table_holds_values(const oct_feed_ctx *ctx, const oct_csv *c);

/* Takes the rows of a CSV after its header; *self is for the functions of oct_read_table. */
oct_status oct_table_open(const oct_feed_ctx *ctx, oct_csv *c, void **self, oct_err *err);

extern const oct_reader oct_read_table;

#endif
