/* lib/data/choice.c -- which of many samples are chosen. */
#include "data/choice.h"

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

/* The first total % n strata hold one place more than the others. */
static bool is_picked(uint64_t total, uint64_t n, uint64_t at, uint64_t seed)
{
    const uint64_t size = total / n, larger = total % n, bound = larger * (size + 1);
    const bool early = at < bound;
    const uint64_t own = early ? size + 1 : size, from = early ? 0 : bound;
    const uint64_t k = (early ? 0 : larger) + (at - from) / own;
    return (at - from) % own == oct_seeded_hash(k, seed) % own;
}

bool oct_spread_has(int64_t total, int64_t n, int64_t at, uint64_t seed)
{
    if (n <= 0 || n >= total)
        return true;
    return n > total / 2 ? !is_picked((uint64_t)total, (uint64_t)(total - n), (uint64_t)at, seed)
                         : is_picked((uint64_t)total, (uint64_t)n, (uint64_t)at, seed);
}

int64_t oct_choice_count(int64_t total, int64_t asked, bool hold)
{
    const int64_t most = hold ? total - total / 5 : total;
    return asked > 0 && asked < most ? asked : most;
}
