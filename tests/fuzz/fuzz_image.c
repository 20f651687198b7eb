/* Fuzz target: any bytes as a picture, then resized by every filter. */
#include "data/pictures/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int i = OCT_INTERP_BILINEAR; i <= OCT_INTERP_NEAREST; i++) {
        oct_err err = OCT_ERR_INIT;
        oct_image im;
        if (oct_image_decode(data, size, &im, &err) != OCT_OK)
            return 0;
        if ((int64_t)im.w * im.h < 1 << 20)
            oct_image_resize(&im, 7, 19, (oct_interp)i, &err);
        oct_image_free(&im);
    }
    return 0;
}
