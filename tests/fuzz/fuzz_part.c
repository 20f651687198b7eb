/* Fuzz target: any bytes, with the checksum that belongs to them, as the part of an evaluation of a network beside
 * itself. */
#include "base/mem.h"
#include "eval/run/eval.h"
#include "eval/parts/part.h"
#include "fuzz_net.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void join(oct_part *p, const oct_graph *g, oct_pool *pool)
{
    const oct_eval_model models[] = { { .name = "a", .graph = g }, { .name = "b", .graph = g } };
    const oct_eval_options o = { .pool = pool, .layer_samples = -1, .per_class = true };
    oct_parts parts = { .v = p, .n = 1 };
    oct_err err = OCT_ERR_INIT;
    oct_joined j = { 0 };
    oct_eval_result *r = NULL;
    const oct_status s = oct_eval_join(models, 2, &parts, &o, &j, &r, &err);
    if (s == OCT_OK && ((uint64_t)r->samples != p->samples || r->n_models != 2))
        abort();
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_EUSAGE && s != OCT_ENOMEM && s != OCT_ENUMERIC &&
        s != OCT_EUNSUPPORTED)
        abort();
    oct_eval_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oct_pool *pool;
    oct_err err = OCT_ERR_INIT;
    oct_part p;
    if (!pool && !(pool = oct_pool_create(1)))
        return 0;
    uint8_t *copy = size < 8 ? NULL : oct_alloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    const uint64_t hash = oct_hash(OCT_HASH_INIT, data, size - 8);
    for (int i = 0; i < 8; i++)
        copy[size - 8 + (size_t)i] = (uint8_t)(hash >> 8 * i);
    const oct_status s = oct_part_parse(&p, copy, size, "fuzz", &err);
    if (s == OCT_OK)
        join(&p, network(), pool);
    else if (s != OCT_EMALFORMED && s != OCT_EUNSUPPORTED && s != OCT_ENOMEM)
        abort();
    oct_part_close(&p);
    oct_free(copy);
    return 0;
}
