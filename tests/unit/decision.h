/* What a job decided of a layer. Include after cmocka. */
#ifndef OCT_TESTS_DECISION_H
#define OCT_TESTS_DECISION_H

#include "quant/quant.h"

#include <string.h>

static inline const oct_layer_decision *decision_of(const oct_qjob *job, const char *layer)
{
    for (size_t i = 0; i < oct_qjob_n_layers(job); i++)
        if (strcmp(oct_qjob_layer(job, i)->name, layer) == 0)
            return oct_qjob_layer(job, i);
    fail_msg("no layer '%s'", layer);
    return NULL;
}

#endif
