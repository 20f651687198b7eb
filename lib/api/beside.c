#define _XOPEN_SOURCE 700
/* What stands beside a model. */
#include "api/beside.h"

#include "base/io.h"
#include "base/json_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 64 << 20, MOST_IDS = 1000 };

/* The file of that name in the model's folder, or in the one around a folder `onnx`. *path NULL: there is none. */
static oct_status find(const char *model, const char *name, oct_arena *arena, const char **path, oct_err *err)
{
    *path = NULL;
    if (!model || oct_path_is_stream(model))
        return OCT_OK;
    const int n = (int)(oct_path_base(model) - model);
    char *at = oct_arena_printf(arena, "%.*s%s", n, model, name), *above;
    char *folder = oct_arena_printf(arena, "%.*s.", n, model);
    char *real = folder ? realpath(folder, NULL) : NULL;
    const bool inside = real && strcmp(oct_path_base(real), "onnx") == 0;
    free(real);
    above = oct_arena_printf(arena, "%.*s../%s", n, model, name);
    if (!at || !folder || !above)
        return oct_nomem(err);
    *path = oct_path_exists(at) ? at : inside && oct_path_exists(above) ? above : NULL;
    return OCT_OK;
}

/* ---- what ends a text ---- */

static bool is_id(const oct_tree *t, int64_t *id)
{
    double v;
    if (!oct_tree_number(t, &v) || v != floor(v) || fabs(v) > INT32_MAX)
        return false;
    *id = (int64_t)v;
    return true;
}

/* An id or a list of them; null is none. */
static oct_status take_ids(const oct_tree *t, const char *path, oct_arena *arena, oct_text_ends *ends, oct_err *err)
{
    const bool list = oct_tree_is_list(t);
    const size_t n = list ? oct_tree_count(t) : 1;
    double number;
    bool truth, good = n <= MOST_IDS;
    if (!t || (!list && !oct_tree_number(t, &number) && !oct_tree_text(t) && !oct_tree_is_object(t) &&
               !oct_tree_bool(t, &truth)))
        return OCT_OK;
    int64_t *id = oct_arena_calloc(arena, n + 1, sizeof *id);
    if (!id)
        return oct_nomem(err);
    for (size_t i = 0; i < n && good; i++)
        good = is_id(list ? oct_tree_at(t, i) : t, &id[i]);
    if (!good) {
        oct_fail(err, OCT_EMALFORMED, "%s: eos_token_id is neither the id of a token nor a list of at most %d ids",
                 path, MOST_IDS);
        oct_hint(err, "--generate ends texts at these ids: mend the file");
        return OCT_EMALFORMED;
    }
    ends->id = id;
    ends->n = n;
    return OCT_OK;
}

static oct_status read_ids(const char *path, const char *object, oct_arena *arena, oct_text_ends *ends, oct_err *err)
{
    char *text;
    oct_tree *root;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "JSON", &text, err));
    oct_status s = oct_tree_parse(text, strlen(text), path, &root, err);
    oct_free(text);
    OCT_TRY(s);
    s = take_ids(oct_tree_member(root, "eos_token_id"), path, arena, ends, err);
    if (s == OCT_OK && !ends->n && object)
        s = take_ids(oct_tree_member(oct_tree_member(root, object), "eos_token_id"), path, arena, ends, err);
    oct_tree_free(root);
    return s;
}

oct_status oct_beside_ends(const char *model, oct_arena *arena, oct_text_ends *ends, oct_err *err)
{
    static const struct {
        const char *name, *object; /* object: a member that may hold it, too */
    } files[] = { { "generation_config.json", NULL },
                  { "genai_config.json", "model" },
                  { "config.json", "text_config" } };
    *ends = (oct_text_ends){ 0 };
    for (size_t i = 0; i < OCT_COUNT(files) && !ends->n; i++) {
        const char *path;
        OCT_TRY(find(model, files[i].name, arena, &path, err));
        if (path)
            OCT_TRY(read_ids(path, files[i].object, arena, ends, err));
        if (ends->n)
            ends->file = files[i].name;
    }
    return OCT_OK;
}

oct_status oct_beside_tokenizer(const char *model, oct_arena *arena, const char **path, oct_err *err)
{
    return find(model, "tokenizer.json", arena, path, err);
}
