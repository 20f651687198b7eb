/* lib/kernels/tiles_shape.h -- shapes of AMX's tiles. Internal. */
#ifndef OCT_KERNELS_TILES_SHAPE_H
#define OCT_KERNELS_TILES_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/* As the instruction reads it. */
typedef struct oct_tiles_shape {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} oct_tiles_shape;

enum { OCT_TILE_ROWS = 16, OCT_TILE_BYTES = 64 };

static const oct_tiles_shape oct_tiles_whole = { .palette = 1,
                                                 .bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
                                                 .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

#endif
