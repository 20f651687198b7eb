/* Maps of classes, from a folder with a file for each sample, or from one array. */
#include "eval/sets/truth_int.h"

#include "data/arrays/map_file.h"

oct_status oct_truth_read_maps(oct_truth *t, const oct_names *names, oct_err *err)
{
    t->kind = OCT_SET_MAPS;
    t->by_stem = true;
    if (!(t->name = oct_arena_calloc(t->arena, names->n + 1, sizeof *t->name)))
        return oct_nomem(err);
    for (size_t i = 0; i < names->n; i++) {
        if (!oct_map_file_claims(names->v[i]))
            continue;
        if (!(t->name[t->n_names++].path = oct_arena_printf(t->arena, "%s/%s", t->path, names->v[i])))
            return oct_nomem(err);
    }
    oct_truth_sort(t);
    return OCT_OK;
}

/* Row `index` of the array. */
static oct_status row_of(const oct_truth *t, int64_t index, int32_t **v, int64_t *h, int64_t *w, oct_err *err)
{
    const oct_array *a = &t->maps;
    if (index < 0 || index >= a->dims[0])
        return oct_fail(err, OCT_EMALFORMED, "%s: %lld maps, and none for sample %lld (counted from 0)", t->path,
                        (long long)a->dims[0], (long long)index);
    *h = a->dims[1];
    *w = a->dims[2];
    const size_t n = (size_t)(*h * *w), size = (size_t)oct_dtype_bits(a->dtype) / 8;
    if (!(*v = oct_calloc(n + 1, sizeof **v)))
        return oct_nomem(err);
    const oct_status s =
        oct_array_convert(a->dtype, (const char *)a->data + (size_t)index * n * size, OCT_S32, *v, n, err);
    if (s == OCT_OK)
        return OCT_OK;
    oct_free(*v);
    return s == OCT_EUNSUPPORTED
               ? oct_fail(err, OCT_EMALFORMED, "%s: maps are %s, expected integers", t->path, oct_dtype_name(a->dtype))
               : s;
}

oct_status oct_truth_map(const oct_truth *t, const char *name, int64_t index, int32_t **v, int64_t *h, int64_t *w,
                         oct_err *err)
{
    if (t->maps.rank == 3)
        return row_of(t, index, v, h, w, err);
    const oct_truth_named *n = oct_truth_find(t, name, index);
    if (!n) {
        oct_fail(err, OCT_EMALFORMED, "%s: no map for sample '%s', or several", t->path, name);
        oct_hint(err, "a map has the name of its sample, with .png or .npy appended");
        return OCT_EMALFORMED;
    }
    return oct_map_file_read(n->path, v, h, w, err);
}
