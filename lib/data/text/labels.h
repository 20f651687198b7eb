/* lib/data/text/labels.h -- labels in a file of their own (--labels FILE). Private to lib/data. */
#ifndef OCT_DATA_LABELS_H
#define OCT_DATA_LABELS_H

#include "base/status.h"

typedef struct oct_labels oct_labels;

/* Reads labels, integers, -1 for none, from an .npy of shape [N] or [N,1], by position in the stream; or from a CSV
 * with a column `label`, by file name if it has a column `file`, else by position. OCT_EMALFORMED names the file and
 * the line or index. */
oct_status oct_labels_load(const char *path, oct_labels **l, oct_err *err);
void oct_labels_free(oct_labels *l); /* NULL allowed */
/* Sets *label to that of a sample. Returns false, and leaves it unchanged, if there is none. */
bool oct_labels_find(const oct_labels *l, const char *name, int64_t index, int64_t *label);
/* The number of labels if they are given by position, else -1. */
int64_t oct_labels_count(const oct_labels *l);

#endif
