/* lib/data/choice.c -- which of many samples are chosen. */
#include "data/choice.h"

uint64_t oct_place_hash(uint64_t at)
{
    uint64_t x = at + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The first total % n strata hold one place more than the others. */
static bool is_picked(uint64_t total, uint64_t n, uint64_t at)
{
    const uint64_t size = total / n, larger = total % n, bound = larger * (size + 1);
    const bool early = at < bound;
    const uint64_t own = early ? size + 1 : size, from = early ? 0 : bound;
    const uint64_t k = (early ? 0 : larger) + (at - from) / own;
    return (at - from) % own == oct_place_hash(k) % own;
}

bool oct_spread_has(int64_t total, int64_t n, int64_t at)
{
    if (n <= 0 || n >= total)
        return true;
    return n > total / 2 ? !is_picked((uint64_t)total, (uint64_t)(total - n), (uint64_t)at) : is_picked((uint64_t)total, (uint64_t)n, (uint64_t)at);
}

int64_t oct_choice_count(int64_t total, int64_t asked, bool hold)
{
    const int64_t most = hold ? total - total / 5 : total;
    return asked > 0 && asked < most ? asked : most;
}
