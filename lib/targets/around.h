/* lib/targets/around.h -- targets that find operators by the quantizers around them (inside lib/targets only). */
#ifndef OCT_TARGETS_AROUND_H
#define OCT_TARGETS_AROUND_H

#include "targets/stand.h"

/* Judges the nodes that are OCT_STANDS_FLOAT so far, by index. */
oct_status oct_target_stand_around(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand *stand, oct_err *err);

#endif
