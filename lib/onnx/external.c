/* External data: files beside the model that hold the bytes of tensors. */
#define _XOPEN_SOURCE 700
#include "onnx/tensor.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool oct_tensor_is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

size_t oct_tensor_bytes(const Onnx__TensorProto *t)
{
    size_t bytes;
    int64_t count;
    const bool known = t->data_type > 0 && t->data_type < OCT_DTYPE_COUNT &&
                       oct_count(t->dims, (int)t->n_dims, &count) &&
                       oct_dtype_bytes((oct_dtype)t->data_type, count, &bytes);
    return known ? bytes : SIZE_MAX;
}

static const char *entry(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = t->external_data[i];
        if (e->key && e->value && strcmp(e->key, key) == 0)
            return e->value;
    }
    return NULL;
}

static bool parse_size(const char *s, size_t *v)
{
    *v = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, *s - '0', v))
            return false;
    }
    return true;
}

/* Whether a location is a relative path without "..". */
static bool is_inside(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (const char *p = path; p;) {
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
            return false;
        p = strchr(p, '/');
        p = p ? p + 1 : NULL;
    }
    return true;
}

static oct_status outside(const char *location, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "its external data '%s' would lie outside the model's folder", location);
    oct_hint(err, "put the data file beside the model, and refer to it by a plain relative name");
    return OCT_EMALFORMED;
}

static bool lies_in(const char *path, const char *folder, size_t n)
{
    return n && strncmp(path, folder, n) == 0 && (path[n] == '/' || folder[n - 1] == '/');
}

/* In the cache of Hugging Face a snapshot, models--X/snapshots/REVISION, has links to files of models--X/blobs. */
static bool is_blob(const char *path, const char *folder)
{
    static const char snapshots[] = "/snapshots/", blobs[] = "/blobs/";
    const char *at = NULL;
    for (const char *p = folder; (p = strstr(p, snapshots)); p++)
        at = p;
    const size_t n = at ? (size_t)(at - folder) : 0;
    return at && strncmp(path, folder, n) == 0 && strncmp(path + n, blobs, sizeof blobs - 1) == 0 &&
           !strchr(path + n + sizeof blobs - 1, '/');
}

/* Whether a file lies in the folder of the file that the model's path leads to: both may be linked into another one. */
static bool lies_beside(const char *real, const char *model)
{
    char *file = realpath(model, NULL);
    const bool beside = file && lies_in(real, file, (size_t)(strrchr(file, '/') - file));
    free(file);
    return beside;
}

/* The file with all links followed, checked to lie in the model's folder, or where the cache that the folder is part of
 * keeps its files; released with free(). */
static oct_status resolve(const oct_model *m, const char *location, char **real, oct_err *err)
{
    if (!is_inside(location))
        return outside(location, err);
    const char *slash = strrchr(m->path, '/');
    size_t n = slash ? (size_t)(slash - m->path) + 1 : 2;
    size_t size = n + strlen(location) + 1;
    char *joined = oct_alloc(size), *folder = NULL;
    if (!joined)
        return oct_nomem(err);
    memcpy(joined, slash ? m->path : "./", n);
    joined[n] = 0;
    folder = realpath(joined, NULL);
    memcpy(joined + n, location, strlen(location) + 1);
    *real = folder ? realpath(joined, NULL) : NULL;
    oct_status s = OCT_OK;
    if (!*real) {
        s = oct_fail_errno(err, "its external data '%s'", joined);
        oct_hint(err, m->from_file ? "such a model is several files: copy them together, under the names that they had"
                                   : "the model was given without the data beside its file: give the file's name, "
                                     "or run in its folder");
    } else {
        if (!lies_in(*real, folder, strlen(folder)) && !is_blob(*real, folder) && !lies_beside(*real, m->path)) {
            s = outside(location, err);
            free(*real);
        }
    }
    free(folder);
    oct_free(joined);
    return s;
}

static oct_status map_once(oct_model *m, const char *real, const oct_map **map, oct_err *err)
{
    for (size_t i = 0; i < m->n_maps; i++)
        if (strcmp(m->maps[i].path, real) == 0) {
            *map = &m->maps[i];
            return OCT_OK;
        }
    if (!OCT_GROW(m->arena, m->maps, m->n_maps, m->cap_maps))
        return oct_nomem(err);
    OCT_TRY(oct_map_open(&m->maps[m->n_maps], real, err));
    *map = &m->maps[m->n_maps++];
    return OCT_OK;
}

static oct_status stated_range(const Onnx__TensorProto *t, size_t want, size_t *offset, size_t *length, oct_err *err)
{
    const char *at = entry(t, "offset"), *len = entry(t, "length");
    *offset = 0;
    *length = want;
    if (at && !parse_size(at, offset))
        return oct_fail(err, OCT_EMALFORMED, "the offset of its external data, '%s', is no number", at);
    if (len && !parse_size(len, length))
        return oct_fail(err, OCT_EMALFORMED, "the length of its external data, '%s', is no number", len);
    if (want != SIZE_MAX && *length != want)
        return oct_fail(err, OCT_EMALFORMED, "its external data are stated as %zu bytes, its shape and type need %zu",
                        *length, want);
    return OCT_OK;
}

static oct_status find_map(oct_model *m, const char *location, const oct_map **map, oct_err *err)
{
    if (m->pending && strcmp(location, m->pending) == 0) {
        *map = &m->maps[1];
        return OCT_OK;
    }
    char *real;
    OCT_TRY(resolve(m, location, &real, err));
    oct_status s = map_once(m, real, map, err);
    free(real);
    return s;
}

static oct_status find_bytes(oct_model *m, const Onnx__TensorProto *t, size_t want, const uint8_t **data, size_t *size,
                             oct_err *err)
{
    const char *location = entry(t, "location");
    size_t offset;
    if (!location)
        return oct_fail(err, OCT_EMALFORMED, "its external data have no location");
    OCT_TRY(stated_range(t, want, &offset, size, err));
    const oct_map *map = NULL;
    OCT_TRY(find_map(m, location, &map, err));
    if (*size == SIZE_MAX && offset <= map->size) /* neither a type that is known nor a length: all that follows */
        *size = map->size - offset;
    if (offset > map->size || *size > map->size - offset) {
        oct_fail(err, OCT_EMALFORMED,
                 "its external data, %zu bytes at offset %zu, run past the end of '%s' (%zu bytes)", *size, offset,
                 map->path, map->size);
        oct_format_hint(map->data, map->size, err);
        oct_hint(err, "the data file is cut short, or another model's: copy both again");
        return OCT_EMALFORMED;
    }
    static const uint8_t none[1];
    *data = map->data ? map->data + offset : none;
    return OCT_OK;
}

oct_status oct_external_bytes(oct_model *m, const Onnx__TensorProto *t, size_t want, const uint8_t **data, size_t *size,
                              oct_err *err)
{
    oct_status s = find_bytes(m, t, want, data, size, err);
    if (s != OCT_OK)
        oct_within(err, "tensor '%s'", t->name ? t->name : "");
    return s;
}

static oct_status find_file(void *model, Onnx__TensorProto *t, oct_err *err)
{
    const uint8_t *data;
    size_t size;
    return oct_tensor_is_external(t) ? oct_external_bytes(model, t, oct_tensor_bytes(t), &data, &size, err) : OCT_OK;
}

oct_status oct_external_find(oct_model *m, oct_err *err)
{
    return oct_proto_tensors(m->proto, find_file, m, err);
}
