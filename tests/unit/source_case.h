/* tests/unit/source_case.h -- samples that cannot be read. Include after cmocka. */
#ifndef OCT_TESTS_SOURCE_CASE_H
#define OCT_TESTS_SOURCE_CASE_H

#include "data/data.h"

#include <string.h>

/* Opening or reading fails with this status; the message or its hint holds `part`. */
static inline void source_fails(const char *spec, const char *steps, const oct_input_desc *in, size_t n,
                                oct_status want, const char *part)
{
    oct_source *s = NULL;
    oct_err err = OCT_ERR_INIT;
    oct_batch b = OCT_BATCH_INIT;
    const oct_source_options o = {
        .specs = &spec, .n_specs = 1, .preprocess = &steps, .n_preprocess = steps != NULL, .inputs = in, .n_inputs = n
    };
    oct_status st = oct_source_open(&o, &s, &err);
    while (st == OCT_OK && (st = oct_source_next(s, 4, &b, &err)) == OCT_OK && b.n) {
    }
    if (st != want || (!strstr(err.text, part) && !strstr(err.hint, part)))
        fail_msg("%s: status %d, '%s' / '%s', expected %d and '%s'", spec, st, err.text, err.hint, want, part);
    oct_batch_free(&b);
    oct_source_close(s);
}

#endif
