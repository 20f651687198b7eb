/* lib/data/pictures/image.c -- picture memory, and which decoder a file is for. */
#include "data/pictures/image.h"

#include "base/mem.h"

#include <string.h>

oct_status oct_image_create(oct_image *im, int64_t w, int64_t h, int c, bool f32, oct_err *err)
{
    *im = (oct_image){ 0 };
    if (w < 1 || h < 1)
        return oct_fail(err, OCT_EMALFORMED, "picture of %lld x %lld", (long long)w, (long long)h);
    if (w > OCT_IMAGE_SIDE || h > OCT_IMAGE_SIDE || (size_t)w * (size_t)h * (size_t)c * (f32 ? 4 : 1) > OCT_IMAGE_BYTES)
        return oct_fail(err, OCT_EUNSUPPORTED, "picture of %lld x %lld is larger than supported (%d a side, %zu MiB)",
                        (long long)w, (long long)h, OCT_IMAGE_SIDE, OCT_IMAGE_BYTES >> 20);
    if (!(im->data = oct_alloc((size_t)w * (size_t)h * (size_t)c * (f32 ? 4 : 1))))
        return oct_nomem(err);
    im->w = (int)w;
    im->h = (int)h;
    im->c = c;
    im->f32 = f32;
    return OCT_OK;
}

void oct_image_free(oct_image *im)
{
    oct_free(im->data);
    *im = (oct_image){ 0 };
}

static void fill(oct_image *im, int value)
{
    const size_t n = (size_t)im->w * (size_t)im->h * (size_t)im->c;
    if (!im->f32)
        memset(im->data, value, n);
    for (size_t i = 0; im->f32 && i < n; i++)
        ((float *)im->data)[i] = (float)value;
}

oct_status oct_image_window(oct_image *im, int x, int y, int w, int h, int pad, oct_err *err)
{
    oct_image to;
    OCT_TRY(oct_image_create(&to, w, h, im->c, im->f32, err));
    const size_t size = (size_t)im->c * (im->f32 ? 4 : 1);
    const int left = x < 0 ? -x : 0, right = im->w - x < w ? im->w - x : w;
    if (left > 0 || right < w || y < 0 || im->h - y < h)
        fill(&to, pad);
    for (int i = 0; i < h && left < right; i++)
        if (y + i >= 0 && y + i < im->h)
            memcpy((char *)to.data + ((size_t)i * (size_t)w + (size_t)left) * size,
                   (const char *)im->data + ((size_t)(y + i) * (size_t)im->w + (size_t)(x + left)) * size,
                   (size_t)(right - left) * size);
    oct_image_free(im);
    *im = to;
    return OCT_OK;
}

static bool is_jpeg(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff;
}

static bool is_png(const uint8_t *p, size_t n)
{
    return n >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_bmp(const uint8_t *p, size_t n)
{
    return n >= 2 && memcmp(p, "BM", 2) == 0;
}

static bool is_webp(const uint8_t *p, size_t n)
{
    return n >= 12 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0;
}

oct_status oct_image_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    *im = (oct_image){ 0 };
    if (n == 0)
        return oct_fail(err, OCT_EMALFORMED, "empty file, expected a picture");
    if (is_jpeg(p, n))
        return oct_jpeg_decode(p, n, im, err);
    if (is_png(p, n))
        return oct_png_decode(p, n, im, err);
    if (is_webp(p, n))
        return oct_webp_decode(p, n, im, err);
    if (is_bmp(p, n))
        return oct_bmp_decode(p, n, im, err);
    return oct_fail(err, OCT_EMALFORMED, "not a picture of a known kind: JPEG, PNG, WebP or BMP");
}
