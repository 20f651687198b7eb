/* lib/api/samples.h -- the samples of a call, for programs. */
#ifndef OCT_API_SAMPLES_H
#define OCT_API_SAMPLES_H

#include "api/voice.h"
#include "base/document.h"
#include "octet/octet.h"

enum { OCT_GENERATE_MOST = 1 << 20 }; /* tokens after each text */

/* Whether there are any. */
static inline bool oct_samples_any(const octet_samples *s)
{
    return s->data.n || s->get;
}

/* samples_pack.c: writes samples as tar shards of at most `count` samples (0: any number), begun anew at `size` (as
 * "256MB"), and makes the report, of schema octet-shards-1. */
oct_status oct_samples_pack(octet_texts specs, const char *prefix, int64_t count, const char *size, oct_voice v,
                            oct_document *to, oct_err *err);
/* The file of a rule for outputs; NULL: it is built in, or there is none. */
const char *oct_rule_file(const char *decode);

#endif
