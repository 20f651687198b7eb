/* Classes: with which other classes each is confused. */
#include "qeval.h"

#include "base/io.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdio.h>

enum { MOST_MATRIX = 16, MOST_CONFUSED = 20 };

static const oct_item *row_of(const oct_item *classes, int64_t class_number)
{
    for (const oct_item *c = NULL; (c = oct_item_next(classes, c));)
        if (oct_item_whole(c, "class") == class_number)
            return c;
    return NULL;
}

static oct_status print_rows(const oct_item *was, const oct_item *model, FILE *out, oct_err *err)
{
    static const char *const shares[] = { "precision", "recall", "f1" };
    const oct_item *classes = oct_item_at(model, "classes");
    const char *own = oct_item_text(model, "class_metric");
    char cell[TOOL_CELL], own_of_float[32];
    oct_table *t = oct_table_of("rrrrrr", (const char *[]){ "class", oct_item_text(model, "class_counts"), "precision",
                                                            "recall", "f1", "f1 of float" });
    snprintf(own_of_float, sizeof own_of_float, "%s of float", own ? own : "");
    if (own) {
        oct_table_column(t, own, OCT_RIGHT);
        oct_table_column(t, own_of_float, OCT_RIGHT);
    }
    for (const oct_item *c = NULL; (c = oct_item_next(classes, c));) {
        const oct_item *f = row_of(was, oct_item_whole(c, "class"));
        oct_table_row(t);
        oct_table_cell(t, "%s", tool_whole_cell(cell, c, "class"));
        oct_table_cell(t, "%s", tool_whole_cell(cell, c, "samples"));
        for (size_t i = 0; i < OCT_COUNT(shares); i++)
            oct_table_cell(t, "%s", tool_percent_cell(cell, c, shares[i]));
        oct_table_cell(t, "%s", f ? tool_percent_cell(cell, f, "f1") : "0.00 %");
        for (int of_float = 0; own && of_float < 2; of_float++)
            oct_table_cell(t, "%s", tool_percent_cell(cell, oct_item_member(of_float ? f : c, own), ""));
    }
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

static int64_t cell_of(const oct_item *confusion, int64_t label, int64_t taken_for)
{
    for (const oct_item *c = NULL; (c = oct_item_next(confusion, c));)
        if (oct_item_whole(c, "label") == label && oct_item_whole(c, "taken_for") == taken_for)
            return oct_item_whole(c, "samples");
    return 0;
}

/* Prints a matrix: labels down, predicted classes across. */
static oct_status print_matrix(const oct_item *classes, const oct_item *confusion, FILE *out, oct_err *err)
{
    char name[TOOL_CELL];
    oct_table *t = oct_table_create();
    oct_table_column(t, "label", OCT_RIGHT);
    for (const oct_item *c = NULL; (c = oct_item_next(classes, c));)
        oct_table_column(t, tool_whole_cell(name, c, "class"), OCT_RIGHT);
    for (const oct_item *label = NULL; (label = oct_item_next(classes, label));) {
        oct_table_row(t);
        oct_table_cell(t, "%s", tool_whole_cell(name, label, "class"));
        for (const oct_item *c = NULL; (c = oct_item_next(classes, c));)
            oct_table_cell(t, "%lld",
                           (long long)cell_of(confusion, oct_item_whole(label, "class"), oct_item_whole(c, "class")));
    }
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

/* The wrong cell with the next largest number of samples; of equal ones the first. */
static const oct_item *next_largest(const oct_item *confusion, const oct_item *last)
{
    const oct_item *best = NULL;
    for (const oct_item *c = NULL; (c = oct_item_next(confusion, c));) {
        const int64_t n = oct_item_whole(c, "samples"), most = last ? oct_item_whole(last, "samples") : INT64_MAX;
        const bool later = n < most || (n == most && c > last);
        if (oct_item_whole(c, "label") != oct_item_whole(c, "taken_for") && later &&
            (!best || n > oct_item_whole(best, "samples")))
            best = c;
    }
    return best;
}

static oct_status print_confused(const oct_item *confusion, FILE *out, oct_err *err)
{
    oct_table *t = oct_table_of("rrr", (const char *[]){ "label", "taken for", "samples" });
    const oct_item *c = NULL;
    char text[3][TOOL_CELL];
    for (int i = 0; i < MOST_CONFUSED && (c = next_largest(confusion, c)); i++)
        oct_table_texts(t, (const char *[]){ tool_whole_cell(text[0], c, "label"),
                                             tool_whole_cell(text[1], c, "taken_for"),
                                             tool_whole_cell(text[2], c, "samples") });
    const oct_status s = oct_table_print(t, out, err);
    oct_table_destroy(t);
    return s;
}

oct_status qeval_print_classes(const oct_item *report, const oct_item *model, FILE *out, oct_err *err)
{
    const oct_item *classes = oct_item_at(model, "classes"), *confusion = oct_item_at(model, "confusion");
    const bool small = oct_item_count(classes, "") <= MOST_MATRIX;
    if (!oct_item_count(classes, ""))
        return OCT_OK;
    oct_print(out, "\nclasses of %s\n", oct_path_base(oct_item_text(model, "path")));
    OCT_TRY(print_rows(oct_item_at(oct_item_of(oct_item_at(report, "models"), 0), "classes"), model, out, err));
    if (!oct_item_count(confusion, ""))
        return OCT_OK;
    oct_print(out,
              small ? "\nlabels, and what they were taken for\n" : "\nwhat was taken for something else most often\n");
    return small ? print_matrix(classes, confusion, out, err) : print_confused(confusion, out, err);
}
