/* lib/kernels/qgemm/qclass.c -- memory of rows by class, and what they are expected to cost. */
#include "kernels/qgemm/qclass.h"

#include "base/mem.h"
#include "kernels/rows.h"

bool oct_qclass_carve(size_t rows, size_t k, void *at, oct_qclass *c, size_t *bytes)
{
    const size_t chunks = oct_qclass_chunks(k);
    size_t each, count, x;
    if (!oct_mul_size(chunks, rows, &each) || each > SIZE_MAX / 64 || chunks > SIZE_MAX / 64)
        return false;
    x = oct_round_up(each * 2 * OCT_QCLASS_CHUNK, 64); /* all of them may be wide */
    count = oct_round_up(chunks * sizeof *c->count, 64);
    if (c) {
        uint8_t *base = at;
        c->x = base;
        c->wide = (int16_t *)(void *)(base + x);
        c->count = (uint16_t(*)[OCT_QCLASSES])(void *)(base + x);
        c->to = (uint16_t *)(void *)(base + x + count);
    }
    return oct_add_size(x + count, oct_round_up(each * sizeof *c->to, 64), bytes);
}

/* Measured on Zen 3 (docs/kernels-lab.md): a chunk where w has 8 bits and 7, and between them by the limit; sorting it,
 * which the panels share; what a panel takes beside them. */
uint64_t oct_qclass_cost(uint32_t bias, size_t k, size_t n)
{
    enum { EIGHT = 2250, SEVEN = 1950, SORT = 5000, PANEL = 400, LOW = 128, HIGH = 255 };
    const int limit = oct_qclass_limit(bias), at = limit > HIGH ? HIGH : limit < LOW ? LOW : limit;
    const uint64_t chunk =
        (uint64_t)(EIGHT - (EIGHT - SEVEN) * (at - LOW) / (HIGH - LOW)) + SORT * OCT_QCLASS_COLUMNS / (n ? n : 1);
    return oct_qclass_chunks(k) * chunk + PANEL;
}
