/* lib/data/text/labels.h -- labels given apart from the samples (--labels FILE). Private to lib/data. */
#ifndef OCT_DATA_LABELS_H
#define OCT_DATA_LABELS_H

#include "base/status.h"

typedef struct oct_labels oct_labels;

/* Integers, -1 for none: .npy of shape [N] or [N,1], by position in the stream; or a CSV with a column `label`, by file
 * name when it has a column `file`, else by position. OCT_EMALFORMED names the file and the line or index. */
oct_status oct_labels_load(const char *path, oct_labels **l, oct_err *err);
void oct_labels_free(oct_labels *l); /* NULL allowed */
/* The label of a sample; leaves it alone and returns false when there is none. */
bool oct_labels_find(const oct_labels *l, const char *name, int64_t index, int64_t *label);
/* How many there are when they go by position, else -1. */
int64_t oct_labels_count(const oct_labels *l);

#endif
