/* lib/data/arrays/shard_writer.c -- samples to tar shards. */
#include "data/arrays/shard_writer.h"

#include "data/arrays/npy.h"
#include "data/readers/spec.h"

#include "base/io.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512 };

typedef struct packer {
    const oct_pack_options *o;
    oct_arena *arena;
    oct_feed_ctx ctx;
    oct_out out;
    bool open;
    int64_t samples, shards, inside; /* inside: samples of the shard that is open */
    int64_t done;                    /* shards that have their names */
} packer;

/* ---- shards ---- */

static const char *shard_name(const packer *p, int64_t k)
{
    return oct_arena_printf(p->arena, "%s-%06lld.tar", p->o->prefix, (long long)k);
}

/* The shards of an earlier run would be read with the new ones. */
static oct_status check_free(const packer *p, oct_err *err)
{
    glob_t g;
    oct_buf pattern = OCT_BUF_INIT;
    for (const char *c = p->o->prefix; *c; c++)
        oct_buf_printf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
    oct_buf_puts(&pattern, "-[0-9][0-9][0-9][0-9][0-9][0-9]*.tar");
    oct_status s = pattern.failed ? oct_nomem(err) : OCT_OK;
    if (s == OCT_OK && glob(oct_buf_str(&pattern), 0, NULL, &g) == 0) {
        s = oct_fail(err, OCT_EUSAGE, "%s: the file exists already", g.gl_pathv[0]);
        oct_hint(err, "remove the shards of that name, or choose another");
        globfree(&g);
    }
    oct_buf_free(&pattern);
    return s;
}

static oct_status close_shard(packer *p, oct_err *err)
{
    static const uint8_t end[2 * BLOCK];
    if (!p->open)
        return OCT_OK;
    oct_out_write(&p->out, end, sizeof end);
    p->open = false;
    OCT_TRY(oct_out_commit(&p->out, err));
    p->done = p->shards;
    return OCT_OK;
}

/* Before a sample: the shard that takes it. */
static oct_status ready_shard(packer *p, oct_err *err)
{
    const oct_pack_options *o = p->o;
    if (p->open && ((o->count && p->inside >= o->count) || (o->size && p->out.written >= (uint64_t)o->size)))
        OCT_TRY(close_shard(p, err));
    if (p->open)
        return OCT_OK;
    const char *name = shard_name(p, p->shards);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_out_open(&p->out, name, err));
    p->open = true;
    p->shards++;
    p->inside = 0;
    return OCT_OK;
}

static void take_back(packer *p)
{
    if (p->open)
        oct_out_abort(&p->out);
    for (int64_t k = 0; k < p->done; k++) {
        const char *name = shard_name(p, k);
        if (name)
            unlink(name);
    }
}

/* ---- members ---- */

/* A header of ustar, whose only varying fields are name and size. */
static void put_header(packer *p, const char *suffix, uint64_t size)
{
    char h[BLOCK] = { 0 };
    snprintf(h, 100, "%06lld.%s", (long long)p->samples, suffix);
    strcpy(h + 100, "0000644");
    strcpy(h + 108, "0000000");
    strcpy(h + 116, "0000000");
    snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
    strcpy(h + 136, "00000000000");
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += (uint8_t)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    oct_out_write(&p->out, h, sizeof h);
}

static void pad(packer *p, uint64_t size)
{
    static const uint8_t zeros[BLOCK];
    if (size % BLOCK)
        oct_out_write(&p->out, zeros, BLOCK - (size_t)(size % BLOCK));
}

static void put_member(packer *p, const char *suffix, const void *bytes, size_t size)
{
    put_header(p, suffix, size);
    oct_out_write(&p->out, bytes, size);
    pad(p, size);
}

static const char *suffix_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? oct_sample_kind(dot + 1) : NULL;
}

/* A row as an .npy of one sample. */
static oct_status put_array(packer *p, const oct_array *a, oct_err *err)
{
    oct_buf head = OCT_BUF_INIT;
    if (!oct_npy_header(&head, a->dtype, a->rank, a->dims, 0)) {
        oct_buf_free(&head);
        return oct_fail(err, OCT_EUNSUPPORTED, "values of type %s cannot be written as .npy", oct_dtype_name(a->dtype));
    }
    if (head.failed) {
        oct_buf_free(&head);
        return oct_nomem(err);
    }
    put_header(p, "npy", head.len + a->bytes);
    oct_out_write(&p->out, oct_buf_str(&head), head.len);
    oct_out_write(&p->out, a->data, a->bytes);
    pad(p, head.len + a->bytes);
    oct_buf_free(&head);
    return OCT_OK;
}

static oct_status put_part(packer *p, const oct_part *part, oct_err *err)
{
    const char *suffix = part->path ? suffix_of(part->path) : NULL;
    if (part->kind == OCT_PART_FILE && suffix) {
        oct_map m;
        OCT_TRY(oct_map_open(&m, part->path, err));
        put_member(p, suffix, m.data, m.size);
        oct_map_close(&m);
        return OCT_OK;
    }
    if (part->kind == OCT_PART_BYTES && suffix) {
        put_member(p, suffix, part->array.data, part->array.bytes);
        return OCT_OK;
    }
    if (part->kind == OCT_PART_ROW || part->kind == OCT_PART_WHOLE)
        return put_array(p, &part->array, err);
    return oct_fail(err, OCT_EUNSUPPORTED, "%s: a shard cannot hold this kind of file",
                    part->path ? part->path : "a sample");
}

static oct_status put_sample(packer *p, const oct_item *item, oct_err *err)
{
    char label[24];
    OCT_TRY(ready_shard(p, err));
    OCT_TRY(put_part(p, &item->parts[0], err));
    if (item->label >= 0) {
        snprintf(label, sizeof label, "%lld", (long long)item->label);
        put_member(p, "cls", label, strlen(label));
    }
    p->samples++;
    p->inside++;
    if (p->o->progress)
        p->o->progress(p->o->progress_arg, "packing", p->samples, 0);
    return OCT_OK;
}

/* ---- all samples ---- */

static oct_status pack_leaf(packer *p, oct_leaf *l, oct_item *item, oct_err *err)
{
    bool end = false;
    oct_status s = l->reader->open(&p->ctx, l->path, &l->self, err);
    while (s == OCT_OK && !end) {
        oct_item_free(item, p->ctx.n);
        s = l->reader->next(l->self, true, item, &end, err);
        if (s == OCT_OK && !end)
            s = put_sample(p, item, err);
    }
    oct_item_free(item, p->ctx.n);
    if (l->self)
        l->reader->close(l->self);
    l->self = NULL;
    return s;
}

static oct_status pack_all(packer *p, oct_err *err)
{
    oct_leaves leaves = { 0 };
    oct_part part = { 0 };
    oct_item item = { .label = -1, .parts = &part };
    OCT_TRY(check_free(p, err));
    for (size_t i = 0; i < p->o->n_specs; i++)
        OCT_TRY(oct_spec_expand(p->o->specs[i], p->arena, &leaves, err));
    for (size_t i = 0; i < leaves.n; i++)
        OCT_TRY(pack_leaf(p, &leaves.v[i], &item, err));
    if (p->samples == 0)
        return oct_fail(err, OCT_EMALFORMED, "%s: it holds no sample", p->o->specs[0]);
    return close_shard(p, err);
}

oct_status oct_pack(const oct_pack_options *o, int64_t *samples, int64_t *shards, oct_err *err)
{
    static const oct_input_desc any = { .name = "", .dtype = OCT_UNDEFINED, .rank = -1 };
    static const oct_steps none = { 0 };
    packer p = { .o = o,
                 .arena = oct_arena_create(),
                 .ctx = { .inputs = &any, .steps = &none, .n = 1, .as_files = true } };
    if (!p.arena)
        return oct_nomem(err);
    const oct_status s = pack_all(&p, err);
    if (s != OCT_OK)
        take_back(&p);
    oct_arena_destroy(p.arena);
    *samples = p.samples;
    *shards = p.shards;
    return s;
}
