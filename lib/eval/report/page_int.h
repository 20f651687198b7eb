/* lib/eval/report/page_int.h -- internals of the page. Its layout is share/page/page.html, which the build embeds, a
 * text with tags in it. Tags read the report's document:
 *
 *   {{path}}              a value of the document, as text
 *   {{path:form words}}   the same in a form, of which the words are an argument
 *   {{@writer}}           what C writes: drawings, and words that depend on several values
 *   {{?path}}...{{/}}     what is between, if there is something at the path, or if a condition of that name holds
 *                         in C; {{!path}}...{{/}}: if not
 *   {{#path}}...{{/}}     what is between, for each of a list
 *   {{+block}}            a block, which stands behind the page: {{:block}}...{{/}}
 *
 * A path starts at the value of the innermost {{#list}}; with "$." at the whole report, with "model.", "metric." or
 * "node." at those that are looped over. "." is the value itself, a number one of a list, and * in a condition any of a
 * list. A \ at the end of a line joins the next one to it. All text from models passes through ev_page_text. */
#ifndef OCT_EVAL_PAGE_INT_H
#define OCT_EVAL_PAGE_INT_H

#include "eval/report/report.h"

typedef struct ev_page ev_page;
typedef struct ev_page_form {
    const char *name;
    void (*put)(const ev_page *p, const oct_item *x, const char *words); /* x: NULL where there is none */
} ev_page_form;
typedef struct ev_page_writer {
    const char *name;
    void (*put)(ev_page *p);
} ev_page_writer;
typedef struct ev_page_condition {
    const char *name;
    bool (*holds)(const ev_page *p);
} ev_page_condition;

struct ev_page {
    const oct_item *report, *models;
    oct_buf *b; /* its `failed` is set also if other memory runs out */
    /* what names in tags stand for; each ends with an entry without a name */
    const ev_page_form *forms;
    const ev_page_writer *writers;
    const ev_page_condition *conditions;
    const oct_item *x, *list;              /* the value of the innermost loop, and its list */
    size_t i;                              /* its place in the list, or of the layer among the rows */
    const oct_item *model, *metric, *node; /* of the loops over these; node: what was decided of the layer x, or NULL */
    size_t k;                              /* the number of the model */
    double most_bytes;                     /* its largest layer's */
    bool in_us;                            /* its times are shown in microseconds */
    bool drawn;                            /* the layer x has drawings */
};

/* page_template.c: writes the page, or a block of it. */
void ev_page_whole(ev_page *p);
void ev_page_block(ev_page *p, const char *name);

/* ---- page_text.c: words and numbers ---- */

void ev_page_text(const ev_page *p, const char *s); /* NULL: nothing */
/* The same for a name, where a line break is allowed after each of its parts. */
void ev_page_name(const ev_page *p, const char *s);
/* A ratio in dB, such as "31.4 dB"; "exact" for equal tensors, or "not finite". */
void ev_page_db(const ev_page *p, double db);
/* A share such as "1.2 %" or "< 0.01 %"; "" for NaN. Returns dst. */
enum { EV_SHARE_TEXT = 32 };
const char *ev_page_share(char dst[EV_SHARE_TEXT], double share);
void ev_page_share_cell(const ev_page *p, double share, const char *class_name);
void ev_page_bytes(const ev_page *p, double bytes);
void ev_page_ms(const ev_page *p, double ms);
/* A metric's value in its unit; nothing for NaN. */
void ev_page_value(const ev_page *p, const oct_item *metric, double v);
/* The name of a file without its folders. */
const char *ev_page_base(const char *path);
/* The kind of computation, which determines the colour in all charts: "int8", "int16", "half", "blocks" or "float".
 * codes: the type of quantized values, or NULL. */
const char *ev_page_kind(const char *scheme, const char *codes);
/* What is known of the metric in the loop for the model in the loop: NaN, or NULL. */
double ev_page_score(const ev_page *p);
const oct_item *ev_page_drop(const ev_page *p);

/* ---- page_time.c ---- */

/* What cells of the model in the loop are shown against, once for all of them. */
void ev_page_measure(ev_page *p);

/* ---- page_rows.c ---- */

/* A layer as the page shows it: measured, decided, or both. */
typedef struct ev_page_row {
    const oct_item *e; /* of "layers"; NULL: the layer was not compared */
    const oct_item *n; /* of "nodes"; NULL: no decision is known */
    double key;        /* its position in the network */
    size_t at;
} ev_page_row;
/* The layers of a model in the order of the network. Release *rows with oct_free. */
void ev_page_rows(const ev_page *p, const oct_item *model, ev_page_row **rows, size_t *n);
const char *ev_page_row_name(const oct_item *e, const oct_item *n);
const char *ev_page_row_op(const oct_item *e, const oct_item *n);
const char *ev_page_row_scheme(const oct_item *e, const oct_item *n);
const char *ev_page_row_kind(const oct_item *e, const oct_item *n);

/* ---- page_draw.c ---- */

void ev_page_draw_values(const ev_page *p, const oct_item *histogram, const oct_item *range);
void ev_page_draw_weights(const ev_page *p, const oct_item *weights);

/* ---- what page_names.inc lists ---- */

#define FORM(name) void ev_form_##name(const ev_page *p, const oct_item *x, const char *words);
#define WRITER(name) void ev_put_##name(ev_page *p);
#define CONDITION(name) bool ev_is_##name(const ev_page *p);
#include "eval/report/page_names.inc"

#endif
