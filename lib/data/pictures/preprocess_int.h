/* lib/data/pictures/preprocess_int.h -- the words of preprocessing steps, in the order of the enumerators, for reading
 * and writing them. */
#ifndef OCT_DATA_PREPROCESS_INT_H
#define OCT_DATA_PREPROCESS_INT_H

#include "data/pictures/preprocess.h"

typedef struct oct_ids_name {
    const char *name; /* NULL ends the list */
    oct_dtype type;
} oct_ids_name;
extern const oct_ids_name oct_ids_names[];
extern const char *const oct_features_names[]; /* without the first */
extern const char *const oct_interp_names[], *const oct_order_names[], *const oct_layout_names[];

#endif
