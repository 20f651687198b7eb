/* Maps of class numbers. */
#include "data/arrays/map_file.h"

#include "base/io.h"
#include "base/mem.h"
#include "data/pictures/image.h"
#include "data/readers/readers.h"

bool oct_map_file_claims(const char *path)
{
    return oct_has_suffix(path, ".png") || oct_has_suffix(path, ".npy");
}

static oct_status from_array(const char *path, int32_t **v, int64_t *h, int64_t *w, oct_err *err)
{
    oct_array a;
    char text[96];
    OCT_TRY(oct_npy_load(path, &a, err));
    const size_t n = (size_t)oct_array_count(&a);
    oct_status s = OCT_OK;
    if (a.rank != 2)
        s = oct_fail(err, OCT_EMALFORMED, "a map of shape %s, expected [H,W]", oct_dims_text(text, a.rank, a.dims));
    else if (!(*v = oct_calloc(n + 1, sizeof **v)))
        s = oct_nomem(err);
    else
        s = oct_array_convert(a.dtype, a.data, OCT_S32, *v, n, err);
    if (a.rank == 2) {
        *h = a.dims[0];
        *w = a.dims[1];
    }
    oct_array_free(&a);
    return s == OCT_EUNSUPPORTED ? oct_fail(err, OCT_EMALFORMED, "a map holds integers") : s;
}

static oct_status from_png(const char *path, int32_t **v, int64_t *h, int64_t *w, oct_err *err)
{
    oct_map m;
    oct_image im = { 0 };
    OCT_TRY(oct_map_open(&m, path, err));
    oct_status s = oct_png_numbers(m.data, m.size, &im, err);
    oct_map_close(&m);
    OCT_TRY(s);
    const size_t n = (size_t)im.w * (size_t)im.h;
    if (!(*v = oct_calloc(n + 1, sizeof **v)))
        s = oct_nomem(err);
    for (size_t i = 0; i < n && s == OCT_OK; i++)
        (*v)[i] = ((const uint8_t *)im.data)[i];
    *h = im.h;
    *w = im.w;
    oct_image_free(&im);
    return s;
}

oct_status oct_map_file_read(const char *path, int32_t **v, int64_t *h, int64_t *w, oct_err *err)
{
    *v = NULL;
    const oct_status s = oct_has_suffix(path, ".npy") ? from_array(path, v, h, w, err) : from_png(path, v, h, w, err);
    if (s != OCT_OK) {
        oct_free(*v);
        *v = NULL;
        if (s != OCT_ENOMEM)
            oct_within(err, "%s", path);
    }
    return s;
}
