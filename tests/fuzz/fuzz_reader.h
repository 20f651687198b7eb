/* What the fuzz targets of lib/data share: bytes as a file for a reader, every sample decoded, twice. */
#ifndef FUZZ_READER_H
#define FUZZ_READER_H

#include "fuzz_folder.h"

#include "data/readers/readers.h"

#include "base/mem.h"

/* A target whose reader goes by names defines another. */
#ifndef FUZZ_FILE
#define FUZZ_FILE "input"
#endif

/* The bytes in a file of this process, overwritten by the next call; "" when there is no room for it. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        fuzz_folder_open();
        fd = open(FUZZ_FILE, O_RDWR | O_CREAT, 0600);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        return "";
    return FUZZ_FILE;
}

static inline void fuzz_samples(const oct_reader *r, const oct_feed_ctx *ctx, void *self, oct_item *item)
{
    oct_err err = OCT_ERR_INIT;
    bool end = false;
    for (int i = 0; i < 50 && !end; i++) {
        oct_item_free(item, ctx->n);
        if (r->next(self, i % 4 != 3, item, &end, &err) != OCT_OK)
            continue;
        for (size_t k = 0; k < ctx->n && !end; k++) {
            oct_array a;
            bool stack, setup;
            oct_seen seen;
            oct_part_decode(&ctx->inputs[k], &ctx->steps[k], &item->parts[k], &a, &stack, &setup, &seen, &err);
            oct_array_free(&a);
        }
    }
    oct_item_free(item, ctx->n);
}

static inline int fuzz_reader_steps(const oct_reader *r, const oct_input_desc *inputs, const oct_steps *steps, size_t n,
                                    const uint8_t *data, size_t size)
{
    oct_feed_ctx ctx = { inputs, steps, n };
    oct_part parts[4] = { { 0 } };
    oct_item item = { .parts = parts };
    oct_err err = OCT_ERR_INIT;
    void *self = NULL;
    const char *path = fuzz_file(data, size);
    if (!*path || oct_interned_create(&ctx.texts, &err) != OCT_OK)
        return 0;
    if (r->open(&ctx, path, &self, &err) != OCT_OK) {
        oct_interned_destroy(ctx.texts);
        return 0;
    }
    if (r->count(self) < -1)
        abort();
    fuzz_samples(r, &ctx, self, &item);
    if (r->rewind(self, &err) == OCT_OK)
        fuzz_samples(r, &ctx, self, &item);
    r->close(self);
    oct_interned_destroy(ctx.texts);
    return 0;
}

static inline int fuzz_reader(const oct_reader *r, const oct_input_desc *inputs, size_t n, const uint8_t *data,
                              size_t size)
{
    const oct_steps steps[4] = { { 0 } };
    return fuzz_reader_steps(r, inputs, steps, n, data, size);
}

#endif
