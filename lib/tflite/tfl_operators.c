#include "tflite/tfl_operators.h"

#include <string.h>

static const oct_tfl_rule rules[] = {
#define RULE(onnx, as, limits, asks, activates, types, write) \
    { #onnx, as, limits, OCT_TFL_ASKS_##asks, activates, OCT_TFL_TAKES_##types, write },
#include "tflite/tfl_operators.inc"
#undef RULE
};

const oct_tfl_rule *oct_tfl_rule_of(const oct_node *n)
{
    for (size_t i = 0; i < OCT_COUNT(rules); i++)
        if (!n->domain[0] && strcmp(n->op, rules[i].onnx) == 0)
            return &rules[i];
    return NULL;
}
