/* lib/targets/stand_int.h -- within lib/targets: targets that find operators by the quantizers around them (around.c). */
#ifndef OCT_TARGETS_STAND_INT_H
#define OCT_TARGETS_STAND_INT_H

#include "targets/stand.h"

/* Judges the nodes that are OCT_STANDS_FLOAT so far, by index. */
oct_status oct_target_stand_around(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err);

#endif
