/* lib/data/preprocess_int.h -- the words of preprocessing steps, for what reads and what writes them: in the order of the enumerators. */
#ifndef OCT_DATA_PREPROCESS_INT_H
#define OCT_DATA_PREPROCESS_INT_H

#include "data/preprocess.h"

extern const char *const oct_interp_names[], *const oct_order_names[], *const oct_layout_names[];

#endif
