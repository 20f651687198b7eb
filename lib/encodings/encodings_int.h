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
    oct_qparams q; /* for unsigned values or, if the form is symmetric, for signed values around zero */
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
    bool by_layer;  /* names are those of layers, and ranges those of their first inputs */
    /* Whether a file, which is not empty, looks like this form. NULL: such files are read as another form. */
    bool (*claims)(const char *text, size_t size);
    oct_status (*read)(oct_encodings *e, const char *text, size_t size, const char *label, oct_err *err);
    /* NULL: it is read alone. */
    oct_status (*write)(oct_encoding_rows *rows, oct_buf *out, oct_err *err);
};

/* Adds an entry for a name of n bytes. OCT_EMALFORMED, without the place in the file, if it exists already. */
oct_status oct_encodings_add(oct_encodings *e, const char *name, size_t n, oct_calib_tensor **t, oct_err *err);
/* Fixes the range to lo and hi, extended to contain 0. False if one of them is not a finite float32. */
bool oct_encodings_pin(oct_calib_tensor *t, double lo, double hi);
/* Fixes parameters for unsigned values of 2 to 32 bits; those of 8 or 16 bits are kept exactly. False if the parameters
 * are invalid: a scale that is not positive, or a zero point out of range. A scale of 0, which tools write for tensors
 * that are always 0, means the range that contains only 0. */
bool oct_encodings_pin_exact(oct_calib_tensor *t, int bits, double scale, double zero);

/* Steps to the next line that is not blank, without blanks at its end. `#` may begin a name: it is no comment here. */
bool oct_encoding_next(oct_words *w);
/* Adds the entry of the name from the line's start to `end`. */
oct_status oct_encoding_add(oct_encodings *e, const oct_words *w, const char *end, oct_calib_tensor **t, oct_err *err);
/* Checks that a name can be written in a line; `separators`: characters that it must not contain. Otherwise OCT_EUSAGE.
 */
oct_status oct_encoding_check_name(const char *name, const char *separators, oct_err *err);
/* oct_tree_parse, with a hint about tokens that are not JSON numbers (NaN). */
oct_status oct_encoding_tree(const char *text, size_t size, const char *label, oct_tree **root, oct_err *err);
/* Whether text begins as a JSON object does. */
bool oct_encoding_is_json(const char *text, size_t size);
/* Whether text holds a word. */
bool oct_encoding_holds(const char *text, size_t size, const char *word);

#endif
