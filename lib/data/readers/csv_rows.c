#include "data/readers/csv_rows.h"

oct_status oct_csv_rows_create(const oct_feed_ctx *ctx, const oct_csv *c, size_t size, oct_csv_rows **self,
                               oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_csv_rows *r = a ? oct_arena_calloc(a, 1, size) : NULL;
    char *path = r ? oct_arena_strdup(a, c->path) : NULL;
    if (!path) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    *r = (oct_csv_rows){ .arena = a, .ctx = ctx, .path = path };
    *self = r;
    return OCT_OK;
}

oct_status oct_csv_rows_read(oct_csv_rows *r, oct_csv *c, oct_err *err)
{
    const int label = oct_csv_column(c, "label");
    c->arena = r->arena;
    for (bool end;; r->n++) {
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            return OCT_OK;
        char **field = oct_arena_memdup(r->arena, c->field, (size_t)c->columns * sizeof *field);
        if (!field || !OCT_GROW(r->arena, r->v, r->n, r->cap))
            return oct_nomem(err);
        r->v[r->n] = (oct_csv_line){ field, -1, c->line };
        if (label >= 0)
            OCT_TRY(oct_csv_label(c, label, &r->v[r->n].label, err));
    }
}

int64_t oct_csv_rows_count(void *self)
{
    return (int64_t)((oct_csv_rows *)self)->n;
}

oct_status oct_csv_rows_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    oct_csv_rows *r = self;
    *end = r->at >= r->n;
    if (*end)
        return OCT_OK;
    const oct_csv_line *x = &r->v[r->at++];
    if (!(item->name = oct_strprintf("%s:%zu", r->path, x->line)))
        return oct_nomem(err);
    item->label = x->label;
    const oct_status s = want ? r->fill(r, x->field, item->parts, err) : OCT_OK;
    if (s != OCT_OK)
        oct_within(err, "%s", item->name);
    return s;
}

oct_status oct_csv_rows_rewind(void *self, oct_err *err)
{
    ((oct_csv_rows *)self)->at = 0;
    return OCT_OK;
}

void oct_csv_rows_close(void *self)
{
    if (self)
        oct_arena_destroy(((oct_csv_rows *)self)->arena);
}
