/* The kinds of sets. */
#include "eval/sets/classes.h"
#include "eval/sets/average_precision.h"
#include "eval/sets/maps.h"
#include "eval/sets/retrieval.h"
#include "eval/sets/sequences.h"
#include "eval/sets/similarity.h"
#include "eval/sets/value_set.h"

const oct_set_type *const oct_set_types[OCT_SET_KINDS] = {
    [OCT_SET_CLASSES] = &oct_set_of_classes,     [OCT_SET_BOXES] = &oct_set_of_boxes,
    [OCT_SET_MAPS] = &oct_set_of_maps,           [OCT_SET_SEQUENCES] = &oct_set_of_sequences,
    [OCT_SET_RETRIEVAL] = &oct_set_of_retrieval, [OCT_SET_PAIRS] = &oct_set_of_pairs,
    [OCT_SET_VALUES] = &oct_set_of_values,
};
