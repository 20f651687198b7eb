/* lib/data/pictures/image.h -- pictures: decoding, resizing. Private to lib/data. */
#ifndef OCT_DATA_IMAGE_H
#define OCT_DATA_IMAGE_H

#include "data/pictures/preprocess.h"

enum { OCT_IMAGE_SIDE = 1 << 15 };          /* the largest side */
#define OCT_IMAGE_BYTES ((size_t)512 << 20) /* the largest decoded picture */

/* Height, width, channels, row by row. 8-bit or float. */
typedef struct oct_image {
    int w, h, c;
    bool f32;   /* data is float instead of uint8_t */
    void *data; /* w * h * c values, owned */
} oct_image;

/* Sets the size and gets memory. Messages do not name the file. OCT_EUNSUPPORTED beyond the limits, OCT_ENOMEM. */
oct_status oct_image_create(oct_image *im, int64_t w, int64_t h, int c, bool f32, oct_err *err);
void oct_image_free(oct_image *im);

/* Decodes JPEG, PNG, WebP or BMP, recognized by the first bytes, to 8-bit gray (c 1; of JPEG and PNG) or RGB (c 3).
 * Alpha is dropped, palettes are expanded, CMYK is converted as Pillow does, EXIF rotation is not applied. A truncated
 * or corrupt file is OCT_EMALFORMED; a format this build lacks, a WebP animation and a compressed BMP are
 * OCT_EUNSUPPORTED. */
oct_status oct_image_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err);
oct_status oct_jpeg_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err);
oct_status oct_png_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err);
oct_status oct_webp_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err);
oct_status oct_bmp_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err);
/* The stored numbers of a PNG of gray values or of a palette, of at most 8 bits (c 1), neither scaled nor converted to
 * colours. OCT_EUNSUPPORTED for other files. */
oct_status oct_png_numbers(const uint8_t *p, size_t n, oct_image *im, oct_err *err);

/* Replaces the picture by one of w x h. 8-bit bilinear, bicubic and nearest equal Pillow's bit for bit. */
oct_status oct_image_resize(oct_image *im, int w, int h, oct_interp interp, oct_err *err);

/* Replaces the picture by its section of w x h from pixel (x, y) on. Pixels outside become `pad`; x and y may be
 * negative. */
oct_status oct_image_window(oct_image *im, int x, int y, int w, int h, int pad, oct_err *err);

#endif
