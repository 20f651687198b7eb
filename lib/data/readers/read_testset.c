/* lib/data/readers/read_testset.c -- reader: ONNX test cases, folders of input_N.pb. */
#include "data/readers/list.h"

#include "base/io.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 4096 };

/* N of "input_N.pb", or -1. */
static int input_number(const char *file)
{
    if (strncmp(file, "input_", 6) != 0 || file[6] < '0' || file[6] > '9')
        return -1;
    char *end;
    long v = strtol(file + 6, &end, 10);
    return strcmp(end, ".pb") == 0 && v < MAX_TENSORS ? (int)v : -1;
}

/* test_data_set_10 after test_data_set_9: shorter names first. */
static int by_number(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t n = strlen(x), m = strlen(y);
    return n != m ? (n < m ? -1 : 1) : strcmp(x, y);
}

static bool is_input(const char *name)
{
    return input_number(name) >= 0;
}

static bool is_set_name(const char *name)
{
    return strncmp(name, "test_data_set_", 14) == 0;
}

/* Whether one of the names is of a kind. */
static bool holds(const oct_names *names, bool (*kind)(const char *))
{
    bool found = false;
    for (size_t i = 0; !found && i < names->n; i++)
        found = kind(names->v[i]);
    return found;
}

bool oct_is_testset(const oct_names *names)
{
    return holds(names, is_input) || holds(names, is_set_name);
}

static const oct_input_desc *input_at(const oct_feed_ctx *ctx, size_t i)
{
    return i < ctx->n ? &ctx->inputs[i] : &ctx->extra[i - ctx->n];
}

/* The input a tensor file feeds: by the name inside when the model has it, else by its number. */
static oct_status place(const oct_feed_ctx *ctx, const char *path, int number, oct_entry *e, oct_err *err)
{
    oct_array a;
    char *name;
    OCT_TRY(oct_pb_load(path, &a, &name, err));
    const size_t all = ctx->n + ctx->n_extra;
    size_t at = all, by_name = all;
    for (size_t i = 0; i < all; i++) {
        at = (ctx->number ? ctx->number[i] : i) == (size_t)number ? i : at;
        by_name = strcmp(input_at(ctx, i)->name, name) == 0 ? i : by_name;
    }
    at = by_name < all ? by_name : at;
    oct_free(name);
    oct_array_free(&a);
    if (at < all)
        e->paths[at] = (char *)(uintptr_t)path;
    return OCT_OK;
}

static oct_status add_set(const oct_feed_ctx *ctx, oct_list *l, const char *dir, oct_err *err)
{
    oct_names names;
    OCT_TRY(oct_list_dir(dir, l->arena, &names, err));
    oct_entry *e = oct_list_add(l, dir);
    if (!e)
        return oct_nomem(err);
    for (size_t i = 0; i < names.n; i++) {
        int number = input_number(names.v[i]);
        if (number < 0)
            continue;
        char *path = oct_arena_printf(l->arena, "%s/%s", dir, names.v[i]);
        if (!path)
            return oct_nomem(err);
        OCT_TRY(place(ctx, path, number, e, err));
    }
    for (size_t i = 0; i < ctx->n; i++)
        if (!e->paths[i])
            return oct_fail(err, OCT_EMALFORMED, "%s: no input_%zu.pb for input '%s'", dir, i, ctx->inputs[i].name);
    return OCT_OK;
}

static oct_status add_sets(const oct_feed_ctx *ctx, oct_list *l, const char *path, oct_err *err)
{
    oct_names names;
    OCT_TRY(oct_list_dir(path, l->arena, &names, err));
    if (holds(&names, is_input))
        return add_set(ctx, l, path, err);
    qsort(names.v, names.n, sizeof *names.v, by_number);
    for (size_t i = 0; i < names.n; i++) {
        if (!is_set_name(names.v[i]))
            continue;
        char *dir = oct_arena_printf(l->arena, "%s/%s", path, names.v[i]);
        if (!dir)
            return oct_nomem(err);
        OCT_TRY(add_set(ctx, l, dir, err));
    }
    return OCT_OK;
}

static oct_status testset_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    oct_list *l = oct_list_create(ctx);
    if (!l)
        return oct_nomem(err);
    oct_status s = add_sets(ctx, l, path, err);
    if (s != OCT_OK) {
        oct_list_close(l);
        return s;
    }
    *self = l;
    return OCT_OK;
}

/* ONNX test cases: test_data_set_N folders of input_N.pb. The reader of folders chooses it. */
const oct_reader oct_read_testset = {
    .open = testset_open,
    .count = oct_list_count,
    .next = oct_list_next,
    .rewind = oct_list_rewind,
    .stamp = oct_list_stamp,
    .close = oct_list_close,
};
