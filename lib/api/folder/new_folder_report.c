/* The report of a folder that was converted. */
#include "api/folder/new_folder_int.h"

#include "base/io.h"
#include "base/number_text.h"

#include <string.h>

static void count_bytes(oct_folder_job *j)
{
    for (size_t i = 0; i < j->f.n_model; i++) {
        const oct_made_model *d = &j->made[i];
        j->before += d->m->file->bytes;
        j->after += j->staging && !j->missed
                        ? d->bytes
                        : (uint64_t)oct_item_whole(oct_document_root(d->report), "size_bytes.after");
    }
    for (size_t i = 0; i < j->f.listing.n; i++) {
        bool data = false, pooled = false;
        for (size_t k = 0; k < j->f.n_model; k++) {
            data |= oct_folder_model_reads(j->made[k].m, &j->f.listing.v[i]);
            pooled |= j->made[k].pool == &j->f.listing.v[i];
        }
        j->before += data ? j->f.listing.v[i].bytes : 0;
        oct_map m;
        const char *path = pooled && j->staging && !j->missed ? oct_new_folder_at(j, j->f.listing.v[i].path) : NULL;
        if (path && oct_map_open(&m, path, NULL) == OCT_OK) {
            j->after += m.size;
            oct_map_close(&m);
        }
    }
}

const char *oct_new_folder_text(const oct_folder_job *j, const char *text)
{
    const char *aside = j->staging ? oct_scratch_path(j->staging) : NULL,
               *at = text && aside ? strstr(text, aside) : NULL;
    return !at ? text
               : oct_arena_printf(j->arena, "%.*s%s%s", (int)(at - text), text, j->x->output, at + strlen(aside));
}

/* The list of warnings, with the places where files will be. */
static void put_warnings(oct_json *j, const oct_made_model *d, const oct_item *r)
{
    oct_json_open(j, "warnings", '[');
    for (const oct_item *w = NULL; (w = oct_item_next(oct_item_at(r, "warnings"), w));)
        oct_json_str(j, NULL, oct_new_folder_text(d->job, oct_item_text(w, "")));
    oct_json_close(j);
}

static void put_model(oct_json *j, const void *row)
{
    const oct_made_model *d = row;
    const oct_item *r = d->report ? oct_document_root(d->report) : NULL;
    oct_json_str(j, "file", d->m->file->path);
    oct_json_str(j, "result", d->result);
    oct_json_str(j, "variant", d->variant ? d->variant->word : NULL);
    oct_json_str(j, "scheme", d->copied ? "copy" : d->scheme);
    oct_json_str(j, "floats", d->m->floats);
    oct_json_int(j, "bytes_before", (int64_t)d->m->bytes);
    oct_json_int(j, "bytes_after", d->copied ? (int64_t)d->m->bytes : oct_item_whole(r, "size_bytes.after"));
    oct_json_str(j, "shared_data", d->pool ? d->pool->path : NULL);
    oct_json_open(j, "float_bytes", '[');
    for (const oct_item *f = NULL; (f = oct_item_next(oct_item_at(r, "float_bytes"), f));)
        oct_json_item(j, NULL, f);
    oct_json_close(j);
    oct_json_int(j, "layers_with_weights", oct_item_whole(r, "layers_with_weights"));
    oct_json_int(j, "int8_layers", oct_item_whole(r, "int8_layers"));
    oct_json_int(j, "half_layers", oct_item_whole(r, "half_layers"));
    oct_json_int(j, "weight_only_layers", oct_item_whole(r, "weight_only_layers"));
    oct_json_int(j, "samples", oct_item_whole(r, "samples"));
    if (oct_item_at(r, "output_sqnr_db"))
        oct_json_num(j, "output_sqnr_db", oct_item_number(r, "output_sqnr_db"));
    if (oct_item_at(r, "metric"))
        oct_json_item(j, "metric", oct_item_at(r, "metric"));
    oct_json_str(j, "text", d->text ? d->text : d->copied ? "copied as it is" : "not made");
    if (oct_item_at(r, "generated"))
        oct_json_item(j, "generated", oct_item_at(r, "generated"));
    put_warnings(j, d, r);
}

static void put_other(oct_json *j, const void *row)
{
    const oct_other_file *o = row;
    oct_json_str(j, "file", o->file->path);
    oct_json_str(j, "what", o->what);
    oct_json_str(j, "why", o->why);
    oct_json_int(j, "bytes", (int64_t)o->file->bytes);
}

/* What a folder gains whose models are quantized already is next to nothing. */
static const char *gain_of(const oct_folder_job *j)
{
    size_t n = 0;
    char was[32], is[32];
    for (size_t i = 0; i < j->f.n_model; i++)
        n += j->made[i].quantized;
    oct_fmt_bytes(was, j->before);
    oct_fmt_bytes(is, j->after);
    const bool larger = j->after > j->before;
    const double ratio = j->after ? (double)j->before / (double)j->after : 0.0,
                 times = larger && ratio > 0 ? 1 / ratio : ratio;
    const char *than = larger ? "larger" : "smaller";
    if (!n)
        return oct_arena_printf(j->arena, "%.2f times %s (%s to %s)", times, than, was, is);
    return oct_arena_printf(j->arena,
                            "%.2f times %s (%s to %s): %zu of them %s quantized already and %s as %s. To choose "
                            "anew, convert the folder of float models",
                            times, than, was, is, n, n == 1 ? "was" : "were", n == 1 ? "stays" : "stay",
                            n == 1 ? "it is" : "they are");
}

static void put_sentence(oct_json *to, const oct_folder_job *j)
{
    const char *output = j->x->output ? j->x->output : "the new folder";
    if (j->missed)
        oct_json_str(to, "text", "a goal was missed: nothing was written");
    else
        oct_json_str(to, "text",
                     oct_arena_printf(j->arena, "%s %s %zu model%s for %s, %s", output,
                                      j->x->dry_run ? "would have" : "has", j->f.n_model, j->f.n_model == 1 ? "" : "s",
                                      j->f.recipe->name, gain_of(j)));
}

void oct_new_folder_report(oct_folder_job *j, oct_document *to)
{
    oct_json v = { .to = to };
    count_bytes(j);
    for (size_t i = 0; i < j->f.n_model; i++)
        j->made[i].text =
            oct_new_folder_text(j,
                                j->made[i].report ? oct_item_text(oct_document_root(j->made[i].report), "text") : NULL);
    oct_report_open(&v, "octet-folder-1");
    oct_json_str(&v, "folder", j->f.listing.folder);
    oct_json_str(&v, "output", j->x->dry_run || j->missed ? NULL : j->x->output);
    oct_json_str(&v, "recipe", j->f.recipe->name);
    oct_json_rows(&v, "models", j->made, j->f.n_model, sizeof *j->made, put_model);
    oct_json_rows(&v, "files", j->other, j->n_other, sizeof *j->other, put_other);
    oct_json_int(&v, "bytes_before", (int64_t)j->before);
    oct_json_int(&v, "bytes_after", (int64_t)j->after);
    oct_json_texts(&v, "warnings", j->warning, j->n_warning);
    put_sentence(&v, j);
    oct_json_close(&v);
}
