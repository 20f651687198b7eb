/* lib/data/pictures/image_bmp.c -- BMP of 1 to 32 bits a pixel, not compressed. Read here: of the packaged decoders,
 * stb_image takes colours behind the end of a palette from memory that nobody wrote, and zeros for what a file lacks.
 */
#include "data/pictures/image.h"

#include "base/little_endian.h"

#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, MASKS_HEADER = 52, MOST_COLOURS = 256 };
enum { PLAIN, RLE8, RLE4, MASKS, ALPHA_MASKS = 6 }; /* ways of storing pixels */

typedef struct bmp {
    int64_t w, h; /* h: without its sign */
    bool down;    /* the first row is the upper one */
    unsigned bits, way;
    uint64_t pixels, stride; /* bytes: where rows begin, and from one to the next */
    const uint8_t *palette;
    unsigned colours, entry; /* entry: bytes of a colour */
    uint32_t mask[3];        /* of red, green, blue */
} bmp;

static oct_status broken(const char *why, oct_err *err)
{
    return oct_fail(err, OCT_EMALFORMED, "broken BMP picture: %s", why);
}

/* The size of the picture and how its pixels are stored. *end: where the header ends. */
static oct_status read_header(const uint8_t *p, size_t n, bmp *b, uint64_t *end, oct_err *err)
{
    const uint32_t size = n < FILE_HEADER + 4 ? 0 : oct_le_u32(p + FILE_HEADER);
    if ((size != CORE_HEADER && size < INFO_HEADER) || size > n - FILE_HEADER)
        return broken(n < FILE_HEADER + INFO_HEADER ? "cut short" : "a header of an unknown size", err);
    *end = FILE_HEADER + (uint64_t)size;
    b->pixels = oct_le_u32(p + 10);
    const uint8_t *at = p + FILE_HEADER + 4;
    if (size == CORE_HEADER) {
        b->w = oct_le_u16(at);
        b->h = oct_le_u16(at + 2);
        b->bits = oct_le_u16(at + 6);
        b->entry = 3;
        return OCT_OK;
    }
    const int64_t h = (int32_t)oct_le_u32(at + 4);
    b->w = (int32_t)oct_le_u32(at);
    b->h = h < 0 ? -h : h;
    b->down = h < 0;
    b->bits = oct_le_u16(at + 10);
    b->way = oct_le_u32(at + 12);
    b->colours = oct_le_u32(at + 28);
    b->entry = 4;
    return OCT_OK;
}

/* Red, green and blue of 16 and 32 bits: said, or what everyone takes. */
static oct_status read_masks(const uint8_t *p, size_t n, bmp *b, uint64_t *end, oct_err *err)
{
    static const uint32_t usual[2][3] = { { 0x7c00, 0x3e0, 0x1f }, { 0xff0000, 0xff00, 0xff } };
    memcpy(b->mask, usual[b->bits == 32], sizeof b->mask);
    if (b->way == PLAIN)
        return OCT_OK;
    const uint64_t at = FILE_HEADER + INFO_HEADER; /* in larger headers the masks stand in the same place */
    if (n < at + 12)
        return broken("cut short", err);
    if (*end < FILE_HEADER + MASKS_HEADER)
        *end = at + (b->way == ALPHA_MASKS ? 16 : 12);
    for (int i = 0; i < 3; i++) {
        const uint32_t m = b->mask[i] = oct_le_u32(p + at + 4 * (uint64_t)i);
        const uint32_t low = m & -m;
        if (!m || ((m / low) & (m / low + 1)) || (b->bits == 16 && m > 0xffff))
            return broken("a mask of colours that has no bits, or gaps", err);
    }
    return OCT_OK;
}

static oct_status check_form(const bmp *b, oct_err *err)
{
    const bool masked = b->bits == 16 || b->bits == 32;
    if (b->way == PLAIN ? masked || b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 24
                        : masked && (b->way == MASKS || b->way == ALPHA_MASKS))
        return OCT_OK;
    if (b->way == RLE4 || b->way == RLE8)
        return oct_fail(err, OCT_EUNSUPPORTED, "BMP picture with run lengths: store it without compression");
    return oct_fail(err, OCT_EUNSUPPORTED, "BMP picture of %u bits a pixel and compression %u", b->bits, b->way);
}

/* Everything that decoding reads lies in the file. */
static oct_status read_form(const uint8_t *p, size_t n, bmp *b, oct_err *err)
{
    uint64_t end;
    OCT_TRY(read_header(p, n, b, &end, err));
    if (b->w < 1 || b->h < 1)
        return broken("it has no pixels", err);
    OCT_TRY(check_form(b, err));
    OCT_TRY(read_masks(p, n, b, &end, err));
    if (b->bits <= 8) {
        const unsigned most = 1u << b->bits;
        if (!b->colours || b->entry == 3)
            b->colours = most;
        if (b->colours > MOST_COLOURS || end + (uint64_t)b->colours * b->entry > n)
            return broken("its palette does not fit", err);
        b->palette = p + end;
    }
    const uint64_t row = (uint64_t)b->w * b->bits; /* in bits */
    b->stride = (row + 31) / 32 * 4;
    if (b->w > OCT_IMAGE_SIDE || b->h > OCT_IMAGE_SIDE)
        return OCT_OK; /* oct_image_create says so */
    if (b->pixels < end || b->pixels > n || ((uint64_t)b->h - 1) * b->stride + (row + 7) / 8 > n - b->pixels)
        return oct_fail(err, OCT_EMALFORMED, "broken BMP picture: %zu bytes cannot hold %lld x %lld pixels of %u bits",
                        n, (long long)b->w, (long long)b->h, b->bits);
    return OCT_OK;
}

static uint8_t scaled(uint32_t pixel, uint32_t mask)
{
    const uint32_t low = mask & -mask;
    return (uint8_t)((uint64_t)((pixel & mask) / low) * 255 / (mask / low));
}

/* False: a number that the palette does not have. */
static bool indexed_row(const bmp *b, const uint8_t *from, uint8_t *to)
{
    for (int64_t x = 0; x < b->w; x++, to += 3) {
        const unsigned shift = 8 - b->bits - (unsigned)(x * b->bits % 8);
        const unsigned k = (unsigned)from[x * b->bits / 8] >> shift & ((1u << b->bits) - 1);
        if (k >= b->colours)
            return false;
        const uint8_t *c = b->palette + (size_t)k * b->entry;
        to[0] = c[2], to[1] = c[1], to[2] = c[0];
    }
    return true;
}

static void direct_row(const bmp *b, const uint8_t *from, uint8_t *to)
{
    for (int64_t x = 0; x < b->w; x++, from += b->bits / 8, to += 3) {
        if (b->bits == 24) {
            to[0] = from[2], to[1] = from[1], to[2] = from[0];
            continue;
        }
        const uint32_t pixel = b->bits == 16 ? oct_le_u16(from) : oct_le_u32(from);
        for (int k = 0; k < 3; k++)
            to[k] = scaled(pixel, b->mask[k]);
    }
}

oct_status oct_bmp_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    bmp b = { 0 };
    *im = (oct_image){ 0 };
    OCT_TRY(read_form(p, n, &b, err));
    OCT_TRY(oct_image_create(im, b.w, b.h, 3, false, err));
    bool fine = true;
    for (int64_t y = 0; y < b.h && fine; y++) {
        const uint8_t *from = p + b.pixels + (uint64_t)(b.down ? y : b.h - 1 - y) * b.stride;
        uint8_t *to = (uint8_t *)im->data + (size_t)y * (size_t)b.w * 3;
        if (b.bits <= 8)
            fine = indexed_row(&b, from, to);
        else
            direct_row(&b, from, to);
    }
    if (fine)
        return OCT_OK;
    oct_image_free(im);
    return broken("a pixel has a colour that is not in the palette", err);
}
