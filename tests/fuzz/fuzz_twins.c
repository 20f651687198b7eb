/* Fuzz target: bytes that may be a .tflite file are computed by each twin, or refused. Models that take more than a
 * moment are left out: their limit is a matter of oct_twin_open, and of tests/unit/test_twins.c. */
#include "tflite/tfl_read.h"
#include "twins/twins.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compute(const oct_twin *t, const oct_tfl_model *m)
{
    oct_err err = OCT_ERR_INIT;
    oct_twin_run *r = NULL;
    const oct_status s = oct_twin_open(t, m, &r, &err);
    if (s != OCT_OK && s != OCT_ENOMEM && s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED) {
        fprintf(stderr, "%s: status %d: %s\n", t->name, (int)s, err.text);
        abort();
    }
    oct_twin_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_tfl_model m;
    oct_arena *arena = oct_arena_create();
    if (!arena)
        return 0;
    if (oct_tfl_model_read(data, size, NULL, arena, &m, &err) == OCT_OK) {
        const oct_twin_cost c = oct_twin_cost_of(&m);
        for (size_t i = 0; oct_twin_at(i) && c.bytes < 1 << 24 && c.steps < 1 << 24; i++)
            compute(oct_twin_at(i), &m);
    }
    oct_arena_destroy(arena);
    return 0;
}
