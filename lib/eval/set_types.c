/* The kinds of sets. */
#include "eval/classes.h"

const oct_set_type *const oct_set_types[OCT_SET_KINDS] = {
    [OCT_SET_CLASSES] = &oct_set_of_classes,
};
