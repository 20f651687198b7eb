/* lib/eval/pairs/name_map.c -- a hash table with open addresses, never more than half full. */
#include "eval/pairs/name_map.h"

#include "base/io.h"

#include <string.h>

oct_status oct_name_map_init(oct_name_map *m, size_t most, oct_arena *a, oct_err *err)
{
    size_t room = 16;
    while (room / 2 < most && room <= SIZE_MAX / 2)
        room *= 2;
    *m = (oct_name_map){ .room = room };
    m->name = oct_arena_calloc(a, room, sizeof *m->name);
    m->at = oct_arena_calloc(a, room, sizeof *m->at);
    return m->name && m->at ? OCT_OK : oct_nomem(err);
}

/* The slot of a name, or the empty one where it belongs. */
static size_t slot_of(const oct_name_map *m, const char *name)
{
    size_t i = (size_t)oct_hash(OCT_HASH_INIT, name, strlen(name)) & (m->room - 1);
    while (m->name[i] && strcmp(m->name[i], name) != 0)
        i = (i + 1) & (m->room - 1);
    return i;
}

void oct_name_map_add(oct_name_map *m, const char *name, size_t at)
{
    const size_t i = slot_of(m, name);
    if (m->name[i])
        return;
    m->name[i] = name;
    m->at[i] = at;
    m->n++;
}

size_t oct_name_map_find(const oct_name_map *m, const char *name)
{
    const size_t i = slot_of(m, name);
    return m->name[i] ? m->at[i] : SIZE_MAX;
}
