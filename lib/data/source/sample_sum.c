/* Samples, added up. */
#include "data/source/sample_sum.h"

#include "base/mem.h"

#include <string.h>

static void put(unsigned char *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b[i] = (unsigned char)(x >> (8 * i));
}

static void add_number(oct_sha256 *h, uint64_t x)
{
    unsigned char b[8];
    put(b, x, sizeof b);
    oct_sha256_add(h, b, sizeof b);
}

/* Whether the place is new. */
static bool mark(oct_sample_sum *s, uint64_t place, bool *is_new)
{
    const size_t word = (size_t)(place / 64);
    if (word >= s->words) {
        const size_t want = word + 1 > 2 * s->words ? word + 1 : 2 * s->words;
        uint64_t *seen = oct_realloc(s->seen, s->words * sizeof *seen, want * sizeof *seen);
        if (!seen)
            return false;
        memset(seen + s->words, 0, (want - s->words) * sizeof *seen);
        s->seen = seen;
        s->words = want;
    }
    const uint64_t bit = UINT64_C(1) << place % 64;
    *is_new = !(s->seen[word] & bit);
    s->seen[word] |= bit;
    return true;
}

static void add_elements(oct_sha256 *h, const oct_array *a)
{
    const oct_str *s = a->data;
    if (a->dtype != OCT_STRING) {
        oct_sha256_add(h, a->data, a->bytes);
        return;
    }
    for (size_t i = 0; i < a->bytes / sizeof *s; i++) {
        add_number(h, s[i].n);
        oct_sha256_add(h, s[i].s, s[i].n);
    }
}

oct_status oct_sample_sum_add(oct_sample_sum *s, int64_t place, const oct_array *arrays, size_t n, oct_err *err)
{
    enum { LANES_A_DIGEST = OCT_SHA256_BYTES / 2 };
    bool is_new;
    oct_sha256 h;
    unsigned char seed[OCT_SHA256_BYTES + 4], wide[OCT_SHA256_BYTES];
    if (!mark(s, (uint64_t)place, &is_new))
        return oct_nomem(err);
    if (!is_new)
        return OCT_OK;
    oct_sha256_begin(&h);
    add_number(&h, (uint64_t)place);
    for (size_t i = 0; i < n; i++) {
        const char *type = oct_dtype_name(arrays[i].dtype);
        oct_sha256_add(&h, type, strlen(type) + 1);
        add_number(&h, (uint64_t)arrays[i].rank);
        for (int k = 0; k < arrays[i].rank; k++)
            add_number(&h, (uint64_t)arrays[i].dims[k]);
        add_elements(&h, &arrays[i]);
    }
    oct_sha256_end(&h, seed);
    for (size_t at = 0; at < OCT_SAMPLE_LANES; at += LANES_A_DIGEST) {
        put(seed + OCT_SHA256_BYTES, at / LANES_A_DIGEST, 4);
        oct_sha256_begin(&h);
        oct_sha256_add(&h, seed, sizeof seed);
        oct_sha256_end(&h, wide);
        for (size_t k = 0; k < LANES_A_DIGEST; k++)
            s->lane[at + k] = (uint16_t)(s->lane[at + k] + (wide[2 * k] | wide[2 * k + 1] << 8));
    }
    s->n++;
    return OCT_OK;
}

void oct_sample_sum_digest(const oct_sample_sum *s, unsigned char digest[OCT_SHA256_BYTES])
{
    oct_sha256 h;
    unsigned char lane[2];
    oct_sha256_begin(&h);
    add_number(&h, s->n);
    for (size_t i = 0; i < OCT_SAMPLE_LANES; i++) {
        put(lane, s->lane[i], 2);
        oct_sha256_add(&h, lane, 2);
    }
    oct_sha256_end(&h, digest);
}

void oct_sample_sum_free(oct_sample_sum *s)
{
    oct_free(s->seen);
    *s = (oct_sample_sum){ 0 };
}
