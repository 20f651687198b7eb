/* lib/base/json_tree.c -- JSON by jansson. */
#include "base/json_tree.h"

#include "base/base_config.h" /* made by the build */

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#ifdef OCT_HAVE_JANSSON
#include <jansson.h>

static oct_status refuse(const json_error_t *why, const char *label, oct_err *err)
{
    return json_error_code(why) == json_error_out_of_memory
               ? oct_nomem(err)
               : oct_fail(err, OCT_EMALFORMED, "%s:%d:%d: %s", label, why->line, why->column, why->text);
}

oct_status oct_tree_parse(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err)
{
    json_error_t why;
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (!*root)
        return refuse(&why, label, err);
    if (json_is_object(*root))
        return OCT_OK;
    oct_tree_free(*root);
    *root = NULL;
    return oct_fail(err, OCT_EMALFORMED, "%s: not a JSON object", label);
}

oct_status oct_tree_check(const char *text, size_t size, const char *label, oct_err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &why);
    const bool fine = root || json_error_code(&why) == json_error_null_byte_in_key;
    json_decref(root);
    return fine ? OCT_OK : refuse(&why, label, err);
}

void oct_tree_free(oct_tree *root)
{
    json_decref(root);
}

bool oct_tree_is_object(const oct_tree *t)
{
    return json_is_object(t);
}

bool oct_tree_is_list(const oct_tree *t)
{
    return json_is_array(t);
}

size_t oct_tree_count(const oct_tree *t)
{
    return json_is_object(t) ? json_object_size(t) : json_array_size(t);
}

oct_tree *oct_tree_at(const oct_tree *list, size_t i)
{
    return json_array_get(list, i);
}

oct_tree *oct_tree_member(const oct_tree *object, const char *name)
{
    return json_object_get(object, name);
}

bool oct_tree_next(oct_tree *object, void **at, const char **name, oct_tree **member)
{
    *at = *at ? json_object_iter_next(object, *at) : json_object_iter(object);
    if (!*at)
        return false;
    *name = json_object_iter_key(*at);
    *member = json_object_iter_value(*at);
    return true;
}

const char *oct_tree_text(const oct_tree *t)
{
    return json_string_value(t);
}

bool oct_tree_number(const oct_tree *t, double *v)
{
    *v = json_number_value(t);
    return json_is_number(t);
}

bool oct_tree_bool(const oct_tree *t, bool *v)
{
    const char *text = json_string_value(t);
    *v = json_is_true(t) || (text && strcasecmp(text, "true") == 0);
    return *v || json_is_false(t) || (text && strcasecmp(text, "false") == 0);
}

#else

oct_status oct_tree_parse(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err)
{
    oct_fail(err, OCT_EUNSUPPORTED, "%s: this build cannot read JSON", label);
    oct_hint(err, "build with jansson (meson configure -Djansson=enabled)");
    return OCT_EUNSUPPORTED;
}

oct_status oct_tree_check(const char *text, size_t size, const char *label, oct_err *err)
{
    return oct_tree_parse(text, size, label, &(oct_tree *){ NULL }, err);
}

void oct_tree_free(oct_tree *root)
{
}

bool oct_tree_is_object(const oct_tree *t)
{
    return false;
}

bool oct_tree_is_list(const oct_tree *t)
{
    return false;
}

size_t oct_tree_count(const oct_tree *t)
{
    return 0;
}

oct_tree *oct_tree_at(const oct_tree *list, size_t i)
{
    return NULL;
}

oct_tree *oct_tree_member(const oct_tree *object, const char *name)
{
    return NULL;
}

bool oct_tree_next(oct_tree *object, void **at, const char **name, oct_tree **member)
{
    return false;
}

const char *oct_tree_text(const oct_tree *t)
{
    return NULL;
}

bool oct_tree_number(const oct_tree *t, double *v)
{
    return false;
}

bool oct_tree_bool(const oct_tree *t, bool *v)
{
    return false;
}
#endif
