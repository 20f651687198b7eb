/* lib/eval/metrics/entities.h -- entities in sequences of tags such as B-PER, I-PER and O. Private to lib/eval. */
#ifndef OCT_EVAL_ENTITIES_H
#define OCT_EVAL_ENTITIES_H

#include "base/status.h"

/* How many entities of want[n] were found in found[n] with the same bounds and type, how many others were found, and
 * how many were missed. Values are places in tag[n_tags]; others are O. Entities begin and end where conlleval and
 * seqeval (its default) have them. OCT_ENOMEM. */
oct_status oct_entities_compare(const char *const *tag, size_t n_tags, const int32_t *want, const int32_t *found,
                                size_t n, uint32_t *hit, uint32_t *extra, uint32_t *missed, oct_err *err);

#endif
