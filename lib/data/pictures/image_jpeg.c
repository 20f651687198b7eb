/* lib/data/pictures/image_jpeg.c -- JPEG by libjpeg(-turbo). Its errors come back by longjmp; warnings that mean lost
 * picture data are errors here. */
#include "data/pictures/image.h"

#include "data/data_config.h" /* made by the build */

#ifdef OCT_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

enum { MAX_SCANS = 200 }; /* a progressive file of thousands of empty scans would decode for hours */

typedef struct jpeg {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr mgr;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
} jpeg;

static void on_error(j_common_ptr c)
{
    jpeg *j = c->client_data;
    j->mgr.format_message(c, j->text);
    longjmp(j->jump, 1);
}

/* Stray bytes between markers and odd headers do no harm; every other warning does. */
static void on_message(j_common_ptr c, int level)
{
    int code = c->err->msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR)
        return;
    on_error(c);
}

static void on_progress(j_common_ptr c)
{
    jpeg *j = c->client_data;
    if (j->c.input_scan_number > MAX_SCANS) {
        snprintf(j->text, sizeof j->text, "more than %d scans", MAX_SCANS);
        longjmp(j->jump, 1);
    }
}

static void on_output(j_common_ptr c)
{
}

/* CMYK stored inverted (as Adobe does) or plain, to RGB: (255 - k) * (255 - ink) / 255, rounded. */
static void cmyk_to_rgb(uint8_t *row, int w, bool inverted, uint8_t *dst)
{
    for (int x = 0; x < w; x++)
        for (int i = 0; i < 3; i++) {
            int ink = row[4 * x + i], k = row[4 * x + 3];
            if (inverted) {
                ink = 255 - ink;
                k = 255 - k;
            }
            int nk = 255 - k, t = ink * nk + 128;
            int v = nk - (((t >> 8) + t) >> 8);
            dst[3 * x + i] = (uint8_t)(v < 0 ? 0 : v);
        }
}

/* Whether n bytes can hold a picture of the size that they claim: with Huffman codes each block of 8x8 takes a bit at
 * least, for its mean, and the largest component has a quarter of the picture's blocks at least, as no two factors of
 * sampling need be of one. (Arithmetic coding can take less; then oct_image_create has the bound.) */
static bool can_hold(const jpeg *j, size_t n)
{
    const uint64_t blocks = ((uint64_t)j->c.image_width + 7) / 8 * (((uint64_t)j->c.image_height + 7) / 8);
    return j->c.arith_code || blocks / 4 <= 8 * (uint64_t)n;
}

static oct_status header(jpeg *j, const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    jpeg_mem_src(&j->c, p, n);
    jpeg_read_header(&j->c, TRUE);
    if (!can_hold(j, n))
        return oct_fail(err, OCT_EMALFORMED, "broken JPEG picture: %zu bytes cannot hold %u x %u pixels", n,
                        j->c.image_width, j->c.image_height);
    int out = 3;
    if (j->c.num_components == 1 || j->c.jpeg_color_space == JCS_GRAYSCALE) {
        j->c.out_color_space = JCS_GRAYSCALE;
        out = 1;
    } else {
        j->c.out_color_space = j->c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    }
    OCT_TRY(oct_image_create(im, j->c.image_width, j->c.image_height, out, false, err));
    jpeg_start_decompress(&j->c);
    return OCT_OK;
}

static void scanlines(jpeg *j, const oct_image *im)
{
    JSAMPARRAY line = NULL;
    if (j->c.out_color_space == JCS_CMYK)
        line = (*j->c.mem->alloc_sarray)((j_common_ptr)&j->c, JPOOL_IMAGE, j->c.output_width * 4, 1);
    const size_t stride = (size_t)im->w * (size_t)im->c;
    while (j->c.output_scanline < j->c.output_height) {
        JSAMPROW dst = (uint8_t *)im->data + j->c.output_scanline * stride;
        JSAMPROW row = line ? line[0] : dst;
        jpeg_read_scanlines(&j->c, &row, 1);
        if (line)
            cmyk_to_rgb(line[0], im->w, j->c.saw_Adobe_marker, dst);
    }
    jpeg_finish_decompress(&j->c);
}

oct_status oct_jpeg_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    jpeg j;
    memset(&j, 0, sizeof j);
    j.c.err = jpeg_std_error(&j.mgr);
    j.mgr.error_exit = on_error;
    j.mgr.emit_message = on_message;
    j.mgr.output_message = on_output;
    j.c.client_data = &j;
    if (setjmp(j.jump)) {
        jpeg_destroy_decompress(&j.c);
        oct_image_free(im);
        if (j.mgr.msg_code == JERR_OUT_OF_MEMORY)
            return oct_nomem(err);
        return oct_fail(err, OCT_EMALFORMED, "broken JPEG picture: %s", j.text);
    }
    jpeg_create_decompress(&j.c);
    j.c.client_data = &j;
    j.progress.progress_monitor = on_progress;
    j.c.progress = &j.progress;
    oct_status s = header(&j, p, n, im, err);
    if (s == OCT_OK)
        scanlines(&j, im);
    jpeg_destroy_decompress(&j.c);
    return s;
}

#else

oct_status oct_jpeg_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    (void)p, (void)n;
    *im = (oct_image){ 0 };
    return oct_fail(err, OCT_EUNSUPPORTED, "JPEG picture: this build has no libjpeg");
}

#endif
