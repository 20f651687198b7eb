/* lib/data/source/choice.c -- which of many samples are chosen. */
#include "data/source/choice.h"

uint64_t oct_place_hash(uint64_t at)
{
    uint64_t x = at + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t oct_seeded_hash(uint64_t at, uint64_t seed)
{
    return oct_place_hash(seed ? at ^ oct_place_hash(seed) : at);
}

/* The place that is picked in the stratum of `at`; *next: the stratum behind it. The first total % n strata hold one
 * place more than the others. */
static uint64_t picked(uint64_t total, uint64_t n, uint64_t at, uint64_t seed, uint64_t *next)
{
    const uint64_t size = total / n, larger = total % n, bound = larger * (size + 1);
    const bool early = at < bound;
    const uint64_t own = early ? size + 1 : size, from = early ? 0 : bound;
    const uint64_t k = (at - from) / own;
    *next = from + (k + 1) * own;
    return from + k * own + oct_seeded_hash((early ? 0 : larger) + k, seed) % own;
}

static bool is_picked(uint64_t total, uint64_t n, uint64_t at, uint64_t seed)
{
    return picked(total, n, at, seed, &(uint64_t){ 0 }) == at;
}

bool oct_spread_has(int64_t total, int64_t n, int64_t at, uint64_t seed)
{
    if (n <= 0 || n >= total)
        return true;
    return n > total / 2 ? !is_picked((uint64_t)total, (uint64_t)(total - n), (uint64_t)at, seed)
                         : is_picked((uint64_t)total, (uint64_t)n, (uint64_t)at, seed);
}

int64_t oct_spread_next(int64_t total, int64_t n, int64_t at, uint64_t seed)
{
    uint64_t next = (uint64_t)at;
    if (n <= 0 || n > total / 2) {
        while (at < total && !oct_spread_has(total, n, at, seed)) /* two at most are left out in a row */
            at++;
        return at;
    }
    while (next < (uint64_t)total) {
        const uint64_t place = picked((uint64_t)total, (uint64_t)n, next, seed, &next);
        if (place >= (uint64_t)at)
            return (int64_t)place;
    }
    return total;
}

int64_t oct_choice_count(int64_t total, int64_t asked, bool hold)
{
    const int64_t most = hold ? total - total / 5 : total;
    return asked > 0 && asked < most ? asked : most;
}
