/* Fuzz target: a text as a recipe for folders and, behind a NUL, a JSON object in which each value of the recipe is
 * set: it stays JSON, and the value is there. */
#include "api/folder/configuration.h"
#include "api/folder/folder_recipe.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether the path has parts that a name in JSON would write otherwise. */
static bool is_plain(const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\' || (*p == '/' && (p[1] == '/' || !p[1])))
            return false;
    return *path && *path != '/';
}

static void set(const char *json, const char *path)
{
    oct_err err = OCT_ERR_INIT;
    oct_tree *before, *after;
    oct_buf b = OCT_BUF_INIT;
    char at[300];
    if (!is_plain(path) || strlen(path) > sizeof at - 2 ||
        oct_tree_parse(json, strlen(json), "x", &before, &err) != OCT_OK)
        return;
    oct_tree_free(before);
    oct_json_set(json, path, "77", &b);
    if (!b.failed) {
        snprintf(at, sizeof at, "/%s", path);
        const oct_status s = oct_tree_parse(oct_buf_str(&b), b.len, "x", &after, &err);
        if (s == OCT_OK && oct_configuration_number(&(oct_configuration){ .root = after }, at, 0) != 77)
            abort();
        if (s == OCT_OK)
            oct_tree_free(after);
        else if (s != OCT_ENOMEM && !strchr(json, '\\')) /* an escape may spell the same name: who amends looks */
            abort();
    }
    oct_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_err err = OCT_ERR_INIT;
    oct_folder_recipe *r;
    size_t stem;
    char *text = oct_alloc(size + 2);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = text[size + 1] = 0;
    const oct_status s = oct_folder_recipe_parse(text, "recipe", &r, &err);
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_ENOMEM)
        abort();
    if (s == OCT_OK) {
        const size_t n = strlen(text);
        oct_folder_recipe_variant_of(r, "onnx/model_q4f16.onnx", &stem);
        oct_folder_recipe_variant_for(r, "weight-only", 4, "float16");
        for (size_t i = 0; i < r->n_amend; i++)
            set(n < size ? text + n + 1 : "{\"a\": {\"b\": [1, \"}\\\"\"]}}", r->amend[i].path);
        oct_folder_recipe_close(r);
    }
    oct_free(text);
    return 0;
}
