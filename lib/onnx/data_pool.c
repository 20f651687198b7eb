/* A file of external data that several models share. */
#include "base/sha256.h"
#include "onnx/save.h"

#include <string.h>

typedef struct piece {
    unsigned char digest[OCT_SHA256_BYTES];
    uint64_t size, offset;
} piece;

struct oct_data_pool {
    oct_arena *arena;
    oct_out out;
    const char *name;
    piece *piece;
    size_t n, cap;
};

oct_status oct_data_pool_open(const char *path, oct_data_pool **pool, oct_err *err)
{
    *pool = NULL;
    oct_arena *arena = oct_arena_create();
    oct_data_pool *p = arena ? oct_arena_calloc(arena, 1, sizeof *p) : NULL;
    const char *copy = p ? oct_arena_strdup(arena, path) : NULL;
    oct_status s = copy ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        const char *slash = strrchr(copy, '/');
        p->arena = arena;
        p->name = slash ? slash + 1 : copy;
        s = oct_out_open(&p->out, path, err);
    }
    if (s == OCT_OK)
        *pool = p;
    else
        oct_arena_destroy(arena);
    return s;
}

const char *oct_data_pool_name(const oct_data_pool *p)
{
    return p->name;
}

oct_status oct_data_pool_add(oct_data_pool *p, const void *data, size_t size, uint64_t *offset, oct_err *err)
{
    static const uint8_t zeros[OCT_DATA_ALIGN];
    piece is = { .size = size };
    oct_sha256 sum;
    oct_sha256_begin(&sum);
    oct_sha256_add(&sum, data, size);
    oct_sha256_end(&sum, is.digest);
    for (size_t i = 0; i < p->n; i++)
        if (p->piece[i].size == size && memcmp(p->piece[i].digest, is.digest, sizeof is.digest) == 0) {
            *offset = p->piece[i].offset;
            return OCT_OK;
        }
    if (!OCT_GROW(p->arena, p->piece, p->n, p->cap))
        return oct_nomem(err);
    oct_out_write(&p->out, zeros, (size_t)(-p->out.written % OCT_DATA_ALIGN));
    *offset = is.offset = p->out.written;
    oct_out_write(&p->out, data, size);
    p->piece[p->n++] = is;
    return OCT_OK;
}

oct_status oct_data_pool_commit(oct_data_pool *p, oct_err *err)
{
    const oct_status s = oct_out_commit(&p->out, err);
    oct_arena_destroy(p->arena);
    return s;
}

void oct_data_pool_abort(oct_data_pool *p)
{
    if (!p)
        return;
    oct_out_abort(&p->out);
    oct_arena_destroy(p->arena);
}
