/* lib/data/pictures/image_webp.c -- WebP by libwebp, into memory of ours. */
#include "data/pictures/image.h"

#include "data/data_config.h" /* made by the build */

#ifdef OCT_HAVE_WEBP

#include <errno.h>

#include <webp/decode.h>

/* Without memory it says that the picture is broken, or that somebody stopped it: malloc tells. */
static oct_status failed(VP8StatusCode code, oct_err *err)
{
    if (errno == ENOMEM)
        return oct_nomem(err);
    switch (code) {
    case VP8_STATUS_UNSUPPORTED_FEATURE: return oct_fail(err, OCT_EUNSUPPORTED, "WebP picture of an unknown kind");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return oct_fail(err, OCT_EMALFORMED, "broken WebP picture: cut short");
    default: return oct_fail(err, OCT_EMALFORMED, "broken WebP picture: code %d of libwebp", (int)code);
    }
}

oct_status oct_webp_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    WebPDecoderConfig c;
    *im = (oct_image){ 0 };
    if (!WebPInitDecoderConfig(&c))
        return oct_fail(err, OCT_EUNSUPPORTED, "WebP picture: another libwebp than the one of the build");
    errno = 0;
    VP8StatusCode code = WebPGetFeatures(p, n, &c.input);
    if (code != VP8_STATUS_OK)
        return failed(code, err);
    if (c.input.has_animation)
        return oct_fail(err, OCT_EUNSUPPORTED, "WebP animation, expected a picture");
    OCT_TRY(oct_image_create(im, c.input.width, c.input.height, 3, false, err));
    c.output.colorspace = MODE_RGB;
    c.output.is_external_memory = 1;
    c.output.u.RGBA.rgba = im->data;
    c.output.u.RGBA.stride = im->w * 3;
    c.output.u.RGBA.size = (size_t)im->w * (size_t)im->h * 3;
    errno = 0;
    code = WebPDecode(p, n, &c);
    if (code == VP8_STATUS_OK)
        return OCT_OK;
    oct_image_free(im);
    return failed(code, err);
}

#else

oct_status oct_webp_decode(const uint8_t *p, size_t n, oct_image *im, oct_err *err)
{
    (void)p, (void)n;
    *im = (oct_image){ 0 };
    oct_fail(err, OCT_EUNSUPPORTED, "WebP picture: this build has no libwebp");
    oct_hint(err, "install libwebp (the package libwebp-dev of Debian and Ubuntu) and build again");
    return OCT_EUNSUPPORTED;
}

#endif
