/* Classes: with which other classes each is confused. */
#include "qeval.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>

enum { MOST_MATRIX = 16, MOST_CONFUSED = 20 };

static const oct_class_row *row_of(const oct_class_table *t, int64_t class_number)
{
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->row[i].class_number == class_number)
            return &t->row[i];
    return NULL;
}

static oct_status print_rows(const oct_class_table *f, const oct_class_table *q, FILE *out, oct_err *err)
{
    oct_table *t = oct_table_of("rrrrrr", (const char *[]){ "class", q->counts ? q->counts : "samples", "precision",
                                                            "recall", "f1", "f1 of float" });
    char own_of_float[32];
    snprintf(own_of_float, sizeof own_of_float, "%s of float", q->own ? q->own : "");
    if (q->own) {
        oct_table_column(t, q->own, OCT_RIGHT);
        oct_table_column(t, own_of_float, OCT_RIGHT);
    }
    for (size_t i = 0; i < q->n_rows; i++) {
        const oct_class_row *r = &q->row[i], *was = row_of(f, r->class_number);
        oct_table_row(t);
        oct_table_cell(t, "%lld", (long long)r->class_number);
        oct_table_cell(t, "%llu", (unsigned long long)r->samples);
        oct_table_cell(t, "%.2f %%", 100 * r->precision);
        oct_table_cell(t, "%.2f %%", 100 * r->recall);
        oct_table_cell(t, "%.2f %%", 100 * r->f1);
        oct_table_cell(t, "%.2f %%", was ? 100 * was->f1 : 0);
        for (int of_float = 0; q->own && of_float < 2; of_float++) {
            const oct_class_row *x = of_float ? was : r;
            oct_table_cell(t, x && !isnan(x->own) ? "%.2f %%" : "", x ? 100 * x->own : 0);
        }
    }
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

static uint64_t cell_of(const oct_class_table *t, int64_t label, int64_t taken_for)
{
    for (size_t i = 0; i < t->n_cells; i++)
        if (t->cell[i].label == label && t->cell[i].taken_for == taken_for)
            return t->cell[i].samples;
    return 0;
}

/* Prints a matrix: labels down, predicted classes across. */
static oct_status print_matrix(const oct_class_table *c, FILE *out, oct_err *err)
{
    char name[24];
    oct_table *t = oct_table_create();
    oct_table_column(t, "label", OCT_RIGHT);
    for (size_t i = 0; i < c->n_rows; i++) {
        snprintf(name, sizeof name, "%lld", (long long)c->row[i].class_number);
        oct_table_column(t, name, OCT_RIGHT);
    }
    for (size_t i = 0; i < c->n_rows; i++) {
        oct_table_row(t);
        oct_table_cell(t, "%lld", (long long)c->row[i].class_number);
        for (size_t k = 0; k < c->n_rows; k++)
            oct_table_cell(t, "%llu", (unsigned long long)cell_of(c, c->row[i].class_number, c->row[k].class_number));
    }
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

/* The wrong cell with the next largest number of samples; of equal ones the first. */
static const oct_confused *next_largest(const oct_class_table *c, const oct_confused *last)
{
    const oct_confused *best = NULL;
    for (const oct_confused *x = c->cell; x < c->cell + c->n_cells; x++) {
        const bool later = !last || x->samples < last->samples || (x->samples == last->samples && x > last);
        if (x->label != x->taken_for && later && (!best || x->samples > best->samples))
            best = x;
    }
    return best;
}

static oct_status print_confused(const oct_class_table *c, FILE *out, oct_err *err)
{
    oct_table *t = oct_table_of("rrr", (const char *[]){ "label", "taken for", "samples" });
    const oct_confused *x = NULL;
    for (int i = 0; i < MOST_CONFUSED && (x = next_largest(c, x)); i++) {
        oct_table_row(t);
        oct_table_cell(t, "%lld", (long long)x->label);
        oct_table_cell(t, "%lld", (long long)x->taken_for);
        oct_table_cell(t, "%llu", (unsigned long long)x->samples);
    }
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

oct_status qeval_print_classes(const oct_eval_result *r, size_t k, FILE *out, oct_err *err)
{
    const oct_class_table *c = &r->models[k].classes;
    if (!c->n_rows)
        return OCT_OK;
    oct_print(out, "\nclasses of %s\n", tool_base(r->models[k].name));
    OCT_TRY(print_rows(&r->models[0].classes, c, out, err));
    if (!c->n_cells)
        return OCT_OK;
    oct_print(out, c->n_rows <= MOST_MATRIX ? "\nlabels, and what they were taken for\n"
                                            : "\nwhat was taken for something else most often\n");
    return c->n_rows <= MOST_MATRIX ? print_matrix(c, out, err) : print_confused(c, out, err);
}
