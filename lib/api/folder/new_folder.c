/* What is no model: it is copied, and the names of results are set in configurations. */
#include "api/folder/new_folder_int.h"

#include "base/io.h"
#include "base/json_tree.h"
#include "data/text/tokenizer.h"

#include <fnmatch.h>
#include <string.h>

char *oct_new_folder_at(const oct_folder_job *j, const char *path)
{
    return oct_arena_printf(j->arena, "%s/%s", j->staging ? oct_scratch_path(j->staging) : j->f.listing.folder, path);
}

oct_status oct_new_folder_warn(oct_folder_job *j, const char *file, const char *text, oct_err *err)
{
    const char *line = oct_arena_printf(j->arena, "%s: %s", file, text);
    if (!line || !OCT_GROW(j->arena, j->warning, j->n_warning, j->cap_warning))
        return oct_nomem(err);
    j->warning[j->n_warning++] = line;
    oct_say(j->h->voice, OCT_NOTE_WARNING, "%s", line);
    return OCT_OK;
}

/* ---- what is broken already ---- */

static oct_status check_text(const char *path, oct_err *err)
{
    oct_map map;
    OCT_TRY(oct_map_open(&map, path, err));
    const oct_status s = map.size ? oct_tree_check((const char *)map.data, map.size, path, err)
                                  : oct_fail(err, OCT_EMALFORMED, "%s: the file is empty", path);
    oct_map_close(&map);
    return s;
}

static oct_status check_tokenizer(const char *path, oct_err *err)
{
    oct_tokenizer *t = NULL;
    const oct_status s = oct_tokenizer_open(path, &t, err);
    oct_tokenizer_close(t);
    return s;
}

oct_status oct_new_folder_examine(oct_folder_job *j, oct_other_file *o, oct_err *err)
{
    const char *path = oct_listing_at(&j->f.listing, o->file->path, j->arena);
    oct_err fault = OCT_ERR_INIT;
    if (!path)
        return oct_nomem(err);
    if (o->why || fnmatch("*.json", path, 0) != 0)
        return OCT_OK;
    oct_status s = check_text(path, &fault);
    if (s == OCT_OK && strcmp(oct_path_base(path), "tokenizer.json") == 0)
        s = check_tokenizer(path, &fault);
    if (s != OCT_EMALFORMED)
        return s == OCT_EUNSUPPORTED ? OCT_OK : s == OCT_OK ? s : oct_fail(err, s, "%s", fault.text);
    const size_t n = strlen(path);
    const char *why = strncmp(fault.text, path, n) == 0 ? fault.text + n + strspn(fault.text + n, ": ") : fault.text;
    const char *text = oct_arena_printf(j->arena, "it is broken, and copied as it is (%s)", why);
    o->what = "copied";
    return text ? oct_new_folder_warn(j, o->file->path, text, err) : oct_nomem(err);
}

/* ---- files ---- */

oct_status oct_new_folder_copy(const oct_folder_job *j, const oct_listed *file, const char *text, size_t size,
                               oct_err *err)
{
    const char *to = oct_new_folder_at(j, file->path);
    oct_map map = { 0 };
    oct_out out;
    if (!to)
        return oct_nomem(err);
    OCT_TRY(oct_scratch_make_room(j->staging, file->path, err));
    if (!text) {
        OCT_TRY(oct_map_open(&map, file->real, err));
        text = (const char *)map.data;
        size = map.size;
    }
    oct_status s = oct_out_open(&out, to, err);
    if (s == OCT_OK) {
        oct_out_write(&out, text, size);
        s = oct_out_commit(&out, err);
    }
    if (map.data)
        oct_map_close(&map);
    return s;
}

/* {"decoder_model_merged": "q4", ...}: the word of each result, by the name of its model; or
 * {"decoder_model_merged_q4.onnx": true, ...}: whether it has external data. */
static void put_value(const oct_folder_job *j, bool data, oct_buf *b)
{
    oct_buf lines = OCT_BUF_INIT;
    oct_json v = { .out = &lines };
    oct_json_open(&v, NULL, '{');
    for (size_t i = 0; i < j->f.n_model; i++) {
        const oct_made_model *d = &j->made[i];
        if (data)
            oct_json_bool(&v, oct_path_base(d->result), d->external);
        else if (d->variant)
            oct_json_str(&v, oct_folder_model_name(d->m), d->variant->word);
    }
    oct_json_close(&v);
    for (const char *p = oct_buf_str(&lines); *p;) { /* in one line: names have no newlines, which JSON escapes */
        const size_t n = strcspn(p, "\n");
        oct_buf_add(b, p, n);
        p += n + strspn(p + n, "\n ");
        if (n && *p && *p != '}' && p[-1] == ' ' && b->len && b->data[b->len - 1] == ',')
            oct_buf_puts(b, " ");
    }
    b->failed |= lines.failed;
    oct_buf_free(&lines);
}

static bool any_external(const oct_folder_job *j)
{
    for (size_t i = 0; i < j->f.n_model; i++)
        if (j->made[i].external)
            return true;
    return false;
}

/* What says of no result anything is not added. */
static bool is_needed(const oct_folder_job *j, const oct_configuration *c, const oct_folder_recipe_amend *a)
{
    const char *path = a->data ? oct_arena_printf(j->arena, "/%s", a->path) : NULL;
    return !a->data || any_external(j) || (path && oct_configuration_has(c, path));
}

static oct_status set_all(const oct_folder_job *j, const oct_listed *file, const oct_configuration *c, oct_buf *text,
                          oct_err *err)
{
    oct_buf_puts(text, c->text);
    for (size_t i = 0; i < j->f.recipe->n_amend; i++) {
        const oct_folder_recipe_amend *a = &j->f.recipe->amend[i];
        oct_buf next = OCT_BUF_INIT, value = OCT_BUF_INIT;
        if (strcmp(a->file, file->path) != 0 || !is_needed(j, c, a))
            continue;
        put_value(j, a->data, &value);
        oct_json_set(oct_buf_str(text), a->path, oct_buf_str(&value), &next);
        next.failed |= value.failed || text->failed;
        oct_buf_free(text);
        oct_buf_free(&value);
        *text = next;
    }
    return text->failed ? oct_nomem(err) : OCT_OK;
}

static oct_status check_json(const oct_buf *text, const char *label, oct_err *err)
{
    oct_tree *root;
    OCT_TRY_WITHIN(oct_tree_parse(text->data, text->len, label, &root, err), err, "amended");
    oct_tree_free(root);
    return OCT_OK;
}

static oct_status amend(const oct_folder_job *j, const oct_listed *file, oct_err *err)
{
    oct_configuration c;
    oct_buf text = OCT_BUF_INIT;
    oct_status s = oct_configuration_read(&j->f.listing, file->path, j->arena, &c, err);
    if (s == OCT_OK)
        s = set_all(j, file, &c, &text, err);
    if (s == OCT_OK)
        s = check_json(&text, c.label, err);
    if (s == OCT_OK)
        s = oct_new_folder_copy(j, file, text.data, text.len, err);
    oct_buf_free(&text);
    oct_configuration_close(&c);
    return s;
}

oct_status oct_new_folder_add_others(oct_folder_job *j, oct_err *err)
{
    for (size_t i = 0; i < j->n_other; i++) {
        const oct_other_file *o = &j->other[i];
        if (!o->why)
            OCT_TRY(strcmp(o->what, "amended") == 0 ? amend(j, o->file, err)
                                                    : oct_new_folder_copy(j, o->file, NULL, 0, err));
    }
    return OCT_OK;
}
