/* lib/data/source/choice.h -- which of many samples are chosen: arithmetic on places alone. */
#ifndef OCT_DATA_CHOICE_H
#define OCT_DATA_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* A fixed hash of a place or number: the finalizer of SplitMix64 (Steele, Lea, Flood, 2014). */
uint64_t oct_place_hash(uint64_t at);
/* The same with a seed. Seed 0 gives oct_place_hash of the place. */
uint64_t oct_seeded_hash(uint64_t at, uint64_t seed);

/* Whether place `at` in [0, total) is one of n places spread over all. The places are cut into n strata whose sizes
 * differ by one at most, and each gives the place that the seeded hash of its number picks in it, so data that repeats
 * with some period is met at all phases. Where n is more than half of total, those left out are picked in this way. n
 * of 0 or from total on: all. */
bool oct_spread_has(int64_t total, int64_t n, int64_t at, uint64_t seed);

/* The first of these places from `at` in [0, total] on, in constant time; total: there is none. */
int64_t oct_spread_next(int64_t total, int64_t n, int64_t at, uint64_t seed);

/* How many of total samples are chosen when `asked` are asked for (0: all). With hold at least a fifth, rounded down,
 * is left unchosen. */
int64_t oct_choice_count(int64_t total, int64_t asked, bool hold);

#endif
