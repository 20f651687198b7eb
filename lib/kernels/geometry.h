/* lib/kernels/geometry.h -- the shape of a convolution: which pixels each output reads (rows.h). */
#ifndef OCT_KERNELS_GEOMETRY_H
#define OCT_KERNELS_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Shapes. Initialise with oct_conv_geom_init (conv/conv.h), which sets the ones, then fill. */
typedef struct oct_conv_geom {
    int64_t n;              /* batch */
    int64_t d, h, w, c;     /* input */
    int64_t od, oh, ow, oc; /* output; oc counts all groups */
    int64_t kd, kh, kw;     /* kernel */
    int64_t sd, sh, sw;     /* strides */
    int64_t dd, dh, dw;     /* dilations */
    int64_t pd, ph, pw;     /* padding before: front, top, left; padding after follows from od, oh, ow */
    int64_t groups;
    int64_t ldx, ldy; /* distance in elements of neighbouring pixels of input and output; 0: c, oc (dense) */
    bool transposed;  /* ConvTranspose: y at oy = iy * sh - ph + ky * dh */
} oct_conv_geom;

#endif
