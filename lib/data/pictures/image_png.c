/* lib/data/pictures/image_png.c -- PNG by libpng. Its errors come back by longjmp; its memory is ours. */
#include "data/pictures/image.h"

#include "base/mem.h"
#include "data/arrays/array_files.h"
#include "data/data_config.h" /* made by the build */

#ifdef OCT_HAVE_PNG

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

typedef struct source {
    const uint8_t *p;
    size_t size, left;
    bool no_memory; /* libpng leaves chunks out, or calls the picture broken, when it gets none */
    char text[160];
} source;

static png_voidp on_alloc(png_structp png, png_alloc_size_t n)
{
    void *p = oct_alloc(n);
    source *s = png_get_mem_ptr(png);
    s->no_memory |= !p;
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    oct_free(p);
}

static void on_read(png_structp png, png_bytep dst, size_t n)
{
    source *s = png_get_io_ptr(png);
    if (n > s->left)
        png_error(png, "cut short");
    memcpy(dst, s->p, n);
    s->p += n;
    s->left -= n;
}

static void on_error(png_structp png, png_const_charp text)
{
    source *s = png_get_error_ptr(png);
    snprintf(s->text, sizeof s->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

/* What values become: colours, or the numbers that the file stores. */
static oct_status transforms(png_structp png, png_infop info, bool numbers, oct_err *err)
{
    const png_byte type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
    if (numbers) {
        if (depth > 8 || (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY))
            return oct_fail(err, OCT_EUNSUPPORTED,
                            "a map of classes is a PNG picture of gray values or a palette, of at most 8 bits");
        png_set_packing(png);
        return OCT_OK;
    }
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (depth == 16)
        png_set_strip_16(png);
    if (type & PNG_COLOR_MASK_ALPHA ||
        png_get_valid(png, info, PNG_INFO_tRNS)) /* the expansion of a palette makes alpha of transparent entries */
        png_set_strip_alpha(png);
    return OCT_OK;
}

/* Everything becomes 8-bit gray or RGB; then the picture's memory is made. */
static oct_status header(png_structp png, png_infop info, bool numbers, oct_image *im, oct_err *err)
{
    png_read_info(png, info);
    const source *s = png_get_io_ptr(png);
    if ((uint64_t)png_get_rowbytes(png, info) * png_get_image_height(png, info) / OCT_DEFLATE_RATIO > s->size)
        return oct_fail(err, OCT_EMALFORMED, "broken PNG picture: cut short, %zu bytes cannot hold %u x %u", s->size,
                        (unsigned)png_get_image_width(png, info), (unsigned)png_get_image_height(png, info));
    OCT_TRY(transforms(png, info, numbers, err));
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    int c = png_get_channels(png, info);
    if ((c != 1 && c != 3) || png_get_rowbytes(png, info) != (size_t)c * png_get_image_width(png, info))
        return oct_fail(err, OCT_EUNSUPPORTED, "PNG picture of %d channels", c);
    return oct_image_create(im, png_get_image_width(png, info), png_get_image_height(png, info), c, false, err);
}

static void rows(png_structp png, const oct_image *im)
{
    const size_t stride = (size_t)im->w * (size_t)im->c;
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (int y = 0; y < im->h; y++)
            png_read_row(png, (png_bytep)im->data + (size_t)y * stride, NULL);
    png_read_end(png, NULL);
}

static oct_status read_png(const uint8_t *p, size_t n, bool numbers, oct_image *im, oct_err *err)
{
    *im = (oct_image){ 0 };
    source s = { .p = p, .size = n, .left = n };
    png_infop info = NULL;
    png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s, on_alloc, on_free);
    if (!png)
        return oct_nomem(err);
    if (!(info = png_create_info_struct(png))) {
        png_destroy_read_struct(&png, NULL, NULL);
        return oct_nomem(err);
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_read_struct(&png, &info, NULL);
        oct_image_free(im);
        return s.no_memory ? oct_nomem(err) : oct_fail(err, OCT_EMALFORMED, "broken PNG picture: %s", s.text);
    }
    png_set_user_limits(png, OCT_IMAGE_SIDE, OCT_IMAGE_SIDE);
    png_set_read_fn(png, &s, on_read);
    oct_status st = header(png, info, numbers, im, err);
    if (st == OCT_OK)
        rows(png, im);
    png_destroy_read_struct(&png, &info, NULL);
    if (st == OCT_OK && s.no_memory) {
        oct_image_free(im);
        return oct_nomem(err);
    }
    return st;
}

oct_status oct_png_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    return read_png(p, n, false, im, err);
}

oct_status oct_png_numbers(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    return read_png(p, n, true, im, err);
}

#else

oct_status oct_png_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    (void)p, (void)n;
    *im = (oct_image){ 0 };
    return oct_fail(err, OCT_EUNSUPPORTED, "PNG picture: this build has no libpng");
}

oct_status oct_png_numbers(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    return oct_png_decode(p, n, im, err);
}

#endif
