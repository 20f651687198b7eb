/* lib/eval/report/page_int.h -- internals of the page, shared by the files that write its sections. All text from
 * models passes through ev_page_text. */
#ifndef OCT_EVAL_PAGE_INT_H
#define OCT_EVAL_PAGE_INT_H

#include "eval/report/page.h"
#include "eval/report/report.h"

typedef struct ev_page {
    const oct_eval_result *r;
    const oct_report_context *c;
    oct_buf *b; /* set also if memory runs out */
} ev_page;

/* ---- page_text.c: words and numbers ---- */

void ev_page_text(const ev_page *p, const char *s);
/* The same for a name, where a line break is allowed after each of its parts. */
void ev_page_name(const ev_page *p, const char *s);
/* A ratio in dB, such as "31.4 dB"; "exact" for equal tensors, or "not finite". */
void ev_page_db(const ev_page *p, double db);
/* A table cell with a number. value: the key for sorting. NaN: the cell is empty. */
void ev_page_db_cell(const ev_page *p, double db, const char *class_name);
/* A share such as "1.2 %" or "< 0.01 %"; "" for NaN. Returns dst. */
enum { EV_SHARE_TEXT = 32 };
const char *ev_page_share(char dst[EV_SHARE_TEXT], double share);
void ev_page_share_cell(const ev_page *p, double share, const char *class_name);
void ev_page_bytes(const ev_page *p, double bytes);
void ev_page_ms(const ev_page *p, double seconds);
/* A metric's value in its unit; nothing for NaN. */
void ev_page_value(const ev_page *p, const oct_metric *m, double v);
/* The name of a file without its folders. */
const char *ev_page_base(const char *path);
/* The kind of computation, which determines the colour in all charts: "int8", "int16", "half", "blocks" or "float". */
const char *ev_page_kind(const char *scheme, oct_dtype codes);
/* The kind of most quantized layers of model k. */
const char *ev_page_model_kind(const ev_page *p, size_t k);
/* Begin and end a section. id: the target of links. */
void ev_page_section(const ev_page *p, const char *id, const char *title);
void ev_page_section_end(const ev_page *p);
/* The heading of a model within a section, if there are several models. */
void ev_page_model_title(const ev_page *p, size_t k);
/* The additional contents for model k; never NULL. */
const oct_page_model *ev_page_model(const ev_page *p, size_t k);

/* ---- page_rows.c ---- */

/* A layer as the page shows it: measured, decided, or both. */
typedef struct ev_page_row {
    const oct_eval_layer *e; /* NULL: the layer was not compared */
    const oct_page_layer *n; /* NULL: no decision is known */
    double key;              /* its position in the network */
    size_t at;
} ev_page_row;
/* The layers of model k in the order of the network. Release *rows with oct_free. */
void ev_page_rows(const ev_page *p, size_t k, ev_page_row **rows, size_t *n);
const char *ev_page_row_name(const ev_page_row *row);
const char *ev_page_row_op(const ev_page_row *row);
const char *ev_page_row_scheme(const ev_page_row *row);
const char *ev_page_row_kind(const ev_page_row *row);

/* ---- sections; each writes nothing if there is nothing to show ---- */

void ev_page_summary(const ev_page *p);  /* page_summary.c: the verdict and the key figures */
void ev_page_accuracy(const ev_page *p); /* page_accuracy.c */
void ev_page_gates(const ev_page *p);
bool ev_page_has_classes(const ev_page *p);
void ev_page_classes(const ev_page *p); /* page_classes.c */
void ev_page_costs(const ev_page *p);   /* page_costs.c: size, latency, memory */
bool ev_page_has_layers(const ev_page *p);
void ev_page_layers(const ev_page *p);                               /* page_layers.c */
void ev_page_draw_values(const ev_page *p, const oct_eval_layer *l); /* page_draw.c: a histogram with the range in it */
void ev_page_draw_weights(const ev_page *p, const oct_eval_weights *w);
bool ev_page_has_costs(const ev_page *p);
void ev_page_time(const ev_page *p); /* page_time.c: time by layer */
bool ev_page_has_sizes(const ev_page *p);
void ev_page_sizes(const ev_page *p);
bool ev_page_has_curve(const ev_page *p);
void ev_page_curve(const ev_page *p); /* page_curve.c: size against loss */
bool ev_page_has_float(const ev_page *p);
void ev_page_float(const ev_page *p); /* page_story.c: which layers stayed float */
/* Lists of lines. */
typedef enum ev_page_list { EV_CHANGES, EV_METHODS, EV_FINDINGS } ev_page_list;
bool ev_page_has_list(const ev_page *p, ev_page_list what);
void ev_page_changes(const ev_page *p);
void ev_page_methods(const ev_page *p);
void ev_page_findings(const ev_page *p);
void ev_page_reproduce(const ev_page *p);

#endif
