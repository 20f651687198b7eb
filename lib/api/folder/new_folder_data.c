/* Files of external data, shared and named as the loader wants them. */
#include "api/folder/new_folder_int.h"

#include "base/io.h"
#include "onnx/save.h"

#include <stdio.h>
#include <string.h>

/* Writes a model anew, with its tensors in the pool, and removes the data file that it had. */
static oct_status move_to_pool(const oct_folder_job *j, const char *path, oct_data_pool *pool, oct_err *err)
{
    oct_model *m;
    const char *next = oct_arena_printf(j->arena, "%s.next", path);
    if (!next)
        return oct_nomem(err);
    OCT_TRY(oct_model_load(path, &m, err));
    oct_status s = oct_model_save(m, next, &(oct_save_options){ .pool = pool }, err);
    for (size_t i = 1; i < m->n_maps && s == OCT_OK; i++)
        remove(m->maps[i].path);
    oct_model_free(m);
    if (s == OCT_OK && rename(next, path) != 0)
        s = oct_fail_errno(err, "%s", path);
    return s;
}

/* Moves the tensors of all results that `takes` accepts to one file of that path. */
static oct_status make_pool(oct_folder_job *j, const char *path,
                            bool (*takes)(const oct_made_model *d, const void *what), const void *what, oct_err *err)
{
    oct_data_pool *pool;
    const char *at = oct_new_folder_at(j, path);
    if (!at)
        return oct_nomem(err);
    OCT_TRY(oct_data_pool_open(at, &pool, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; i < j->f.n_model && s == OCT_OK; i++)
        if (takes(&j->made[i], what)) {
            const char *model = oct_new_folder_at(j, j->made[i].result);
            s = model ? move_to_pool(j, model, pool, err) : oct_nomem(err);
        }
    if (s != OCT_OK) {
        oct_data_pool_abort(pool);
        return s;
    }
    return oct_data_pool_commit(pool, err);
}

static bool shares(const oct_made_model *d, const void *pool)
{
    return d->pool == pool;
}

static bool is_that(const oct_made_model *d, const void *one)
{
    return d == one;
}

/* "*.onnx_data": onnx/model_q4.onnx -> onnx/model_q4.onnx_data */
static char *data_path(const oct_folder_job *j, const oct_made_model *d)
{
    const char *pattern = j->f.recipe->data, *star = strchr(pattern, '*');
    return oct_arena_printf(j->arena, "%.*s%.*s%s", (int)(star - pattern), pattern, (int)strlen(d->result) - 5,
                            d->result, star + 1);
}

/* A model beyond 2 GB has a data file, whose name the loader may want to be another. */
static oct_status name_data(oct_folder_job *j, oct_made_model *d, oct_err *err)
{
    oct_model *m;
    const char *path = oct_new_folder_at(j, d->result), *data = data_path(j, d);
    if (!path || !data)
        return oct_nomem(err);
    OCT_TRY(oct_model_load(path, &m, err));
    d->external = m->n_maps > 1;
    oct_model_free(m);
    return d->external ? make_pool(j, data, is_that, d, err) : OCT_OK;
}

oct_status oct_new_folder_place_data(oct_folder_job *j, oct_err *err)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        oct_made_model *d = &j->made[i];
        bool first = d->pool;
        for (size_t k = 0; k < i; k++)
            first &= j->made[k].pool != d->pool;
        if (first)
            OCT_TRY(make_pool(j, d->pool->path, shares, d->pool, err));
        else if (!d->pool && !d->copied && j->f.recipe->data)
            OCT_TRY(name_data(j, d, err));
    }
    return OCT_OK;
}
