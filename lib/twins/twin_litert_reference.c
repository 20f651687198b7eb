/* LiteRT with its built-in reference kernels (BUILTIN_REF). */
#include "twins/twin_ops.h"

static const oct_twin_rule *const rules[] = {
    oct_twin_wide, oct_twin_builtin, oct_twin_large, oct_twin_moves, oct_twin_reals, oct_twin_real_layers, NULL
};

const oct_twin oct_twin_litert_reference = { "litert-reference", "LiteRT with its reference kernels",
                                             "ai-edge-litert 2.3.0 on x86-64", rules };
