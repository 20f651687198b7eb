/* lib/encodings/encodings_int.h -- what the files of this folder share: a form's record, entries, lines of text. */
#ifndef OCT_ENCODINGS_ENCODINGS_INT_H
#define OCT_ENCODINGS_ENCODINGS_INT_H

#include "base/json_tree.h"
#include "base/words.h"
#include "encodings/encodings.h"

/* One tensor as it is written. */
typedef struct oct_encoding_row {
    const char *name;
    oct_range range;
    int bits;
    oct_qparams q; /* of unsigned values, or, where the form is symmetric, of signed ones around zero */
} oct_encoding_row;

typedef struct oct_encoding_rows {
    oct_encoding_row *v;
    size_t n;
    const oct_graph *g; /* NULL unless the form is by layer */
    size_t written;     /* as a form counts that does not write every row */
} oct_encoding_rows;

struct oct_encoding_form {
    const char *name, *summary;
    bool symmetric; /* ranges are around zero */
    bool by_layer;  /* names are those of layers: the range is that of their first input */
    /* Whether a file looks like this; it is not empty. NULL: none does, as another form reads it. */
    bool (*claims)(const char *text, size_t size);
    oct_status (*read)(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err);
    /* NULL: it is read alone. */
    oct_status (*write)(oct_encoding_rows *rows, oct_buf *out, oct_err *err);
};

/* Adds the entry of a name, of n bytes. OCT_EMALFORMED for one that is there, without the place. */
oct_status oct_encodings_add(oct_encodings *e, const char *name, size_t n, oct_calib_tensor **t, oct_err *err);
/* Pins to lo and hi, widened to hold 0. False where one is no finite float32. */
bool oct_encodings_pin(oct_calib_tensor *t, double lo, double hi);
/* Pins to parameters of `bits` unsigned values, 2 to 32: exact ones where they are 8 or 16. False where these are no
 * parameters: a scale that is not positive, a zero point beyond the values. A scale of 0, as tools write it for a
 * tensor that is 0 always, is the range of 0 alone. */
bool oct_encodings_pin_exact(oct_calib_tensor *t, int bits, double scale, double zero);

/* Steps to the next line that is not blank, without blanks at its end. `#` may begin a name: it is no comment here. */
bool oct_encoding_next(oct_words *w);
/* Adds the entry of the name from the line's start to `end`. */
oct_status oct_encoding_add(oct_encodings *e, const oct_words *w, const char *end, oct_calib_tensor **t, oct_err *err);
/* Whether a name can stand in a line; `separators`: characters that it may not have. Else OCT_EUSAGE. */
oct_status oct_encoding_check_name(const char *name, const char *separators, oct_err *err);
/* oct_tree_parse, with a hint where a number is none. */
oct_status oct_encoding_tree(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err);
/* Whether text begins as a JSON object does. */
bool oct_encoding_is_json(const char *text, size_t size);
/* Whether text holds a word. */
bool oct_encoding_holds(const char *text, size_t size, const char *word);

#endif
