/* lib/eval/pairs/name_map.h -- numbers by name, found in constant time, where a search through a list for each name
 * would be quadratic. */
#ifndef OCT_EVAL_NAME_MAP_H
#define OCT_EVAL_NAME_MAP_H

#include "base/mem.h"

typedef struct oct_name_map {
    const char **name; /* [room], NULL where a slot is empty */
    size_t *at;        /* [room] */
    size_t n, room;    /* room is a power of two */
} oct_name_map;

/* Makes an empty map for up to `most` names, in memory of the arena. Names are borrowed. OCT_ENOMEM. */
oct_status oct_name_map_init(oct_name_map *m, size_t most, oct_arena *a, oct_err *err);
/* Gives a name a number. If the name has one, it keeps that: the first one counts. At most `most` different names may
 * be added. */
void oct_name_map_add(oct_name_map *m, const char *name, size_t at);
/* The number of a name; SIZE_MAX: it has none. */
size_t oct_name_map_find(const oct_name_map *m, const char *name);

#endif
