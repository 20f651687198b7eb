/* tests/fuzz/fuzz_net.h -- the network of targets whose input is about one. */
#ifndef FUZZ_NET_H
#define FUZZ_NET_H

#include "onnx/model.h"

#include <stdio.h>
#include <stdlib.h>

static inline const oct_graph *network(void)
{
    static oct_model *m;
    oct_err err = OCT_ERR_INIT;
    if (!m && oct_model_load(OCT_NET, &m, &err) != OCT_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return m->graph;
}

#endif
