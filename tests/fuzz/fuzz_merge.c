/* Fuzz target: two calibration tables, with a line of = between them, are merged in both orders: both are refused, or
 * the sums are equal. */
#include "observers/calib.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BETWEEN[] = "\n=\n";

static oct_calib *merged(const uint8_t *a, size_t na, const uint8_t *b, size_t nb)
{
    oct_calib *into = NULL, *from = NULL;
    oct_status s = oct_calib_parse(a, na, "a", &into, NULL);
    if (s == OCT_OK)
        s = oct_calib_parse(b, nb, "b", &from, NULL);
    if (s == OCT_OK)
        s = oct_calib_merge(into, from, NULL);
    oct_calib_destroy(from);
    if (s == OCT_OK)
        return into;
    oct_calib_destroy(into);
    return NULL;
}

/* The same text once both are read again: in the order of the first. */
static void check_same(const oct_calib *x, const oct_calib *y)
{
    oct_calib_change *changes;
    size_t n;
    if (x->samples != y->samples || x->n_tensors != y->n_tensors || x->n_shards != y->n_shards)
        abort();
    if (oct_calib_diff(x, y, &changes, &n, NULL) != OCT_OK || n != 0)
        abort();
    oct_free(changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = NULL;
    const size_t w = sizeof BETWEEN - 1;
    for (size_t i = 0; i + w <= size && !cut; i++)
        cut = memcmp(data + i, BETWEEN, w) == 0 ? data + i : NULL;
    if (!cut)
        return 0;
    const uint8_t *second = cut + w;
    const size_t n = (size_t)(cut - data) + 1, rest = size - (size_t)(second - data);
    oct_calib *ab = merged(data, n, second, rest), *ba = merged(second, rest, data, n);
    if (!ab != !ba)
        abort();
    if (ab)
        check_same(ab, ba);
    oct_calib_destroy(ab);
    oct_calib_destroy(ba);
    return 0;
}
