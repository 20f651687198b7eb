/* lib/api/beside.h -- what published models have in files beside them, in the same folder or, where that is called
 * onnx, in the one around it. Private to lib/api. */
#ifndef OCT_API_BESIDE_H
#define OCT_API_BESIDE_H

#include "base/mem.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* The tokens that end a text. */
typedef struct oct_text_ends {
    const int64_t *id; /* [n], in the arena */
    size_t n;
    const char *file; /* the name of the file that says so, of static storage; NULL: none does */
} oct_text_ends;

/* Reads eos_token_id of the first of generation_config.json, genai_config.json and config.json that has one. model: a
 * path; NULL, or a stream: nothing is beside it. OCT_EMALFORMED: such a file is no JSON, or holds no ids there. */
oct_status oct_beside_ends(const char *model, oct_arena *arena, oct_text_ends *ends, oct_err *err);

/* The path of tokenizer.json, in the arena; NULL: there is none. */
oct_status oct_beside_tokenizer(const char *model, oct_arena *arena, const char **path, oct_err *err);

#endif
