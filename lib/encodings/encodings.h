/* lib/encodings/encodings.h -- ranges of tensors in the formats of other tools: read as fixed ranges of a calibration
 * table, and written from one.
 *
 * A form has a range, or a scale and a zero point, for each tensor. The latter are kept with the range
 * (oct_calib_exact), so that a conversion uses them unchanged. docs/formats.md has a table of the forms and of what
 * each can express. */
#ifndef OCT_ENCODINGS_ENCODINGS_H
#define OCT_ENCODINGS_ENCODINGS_H

#include "graph/graph.h"
#include "observers/calib.h"
#include "observers/observer.h"

typedef struct oct_encoding_form oct_encoding_form;

/* The table: 0 <= i < oct_encoding_form_count(). */
size_t oct_encoding_form_count(void);
const oct_encoding_form *oct_encoding_form_at(size_t i);
const char *oct_encoding_form_name(const oct_encoding_form *f);    /* as --format has it: "aimet" */
const char *oct_encoding_form_summary(const oct_encoding_form *f); /* "encodings of AIMET and QNN, JSON" */
const char *oct_encoding_form_names(void);                         /* "ort, ort-cache, ..." */
/* NULL: there is none of that name. */
const oct_encoding_form *oct_encoding_form_find(const char *name);
/* Whether it names layers and contains scales of weights, so that writing needs the model. */
bool oct_encoding_form_needs_model(const oct_encoding_form *f);

/* The form of a file, by its contents; NULL: none (it may be a calibration table). */
const oct_encoding_form *oct_encoding_form_of(const void *data, size_t size);

/* Whether a file is a calibration table, compressed or not, or empty; the reader of tables reports the latter. */
bool oct_encoding_is_table(const void *data, size_t size);

/* What a file says. */
typedef struct oct_encodings {
    const oct_encoding_form *form;
    oct_calib *ranges; /* by the names of the file; each is pinned, or off if the file leaves it float */
    size_t weights;    /* entries of weights, which are not taken */
} oct_encodings;

/* Reads bytes of any form. Release *e with oct_encodings_free, also after a failure. OCT_EMALFORMED with the place in
 * the file ("label:line:" or the path within JSON); OCT_EUNSUPPORTED where this build reads no JSON, or the file has no
 * ranges. */
oct_status oct_encodings_parse(const void *data, size_t size, const char *label, oct_encodings *e, oct_err *err);
void oct_encodings_free(oct_encodings *e);

/* What became of a file's entries. */
typedef struct oct_encodings_match {
    const oct_encoding_form *form;
    size_t taken;               /* ranges of tensors of the model */
    size_t weights;             /* entries of its weights */
    size_t others;              /* entries for tensors or layers that are not in the model */
    char other[128], near[128]; /* the first of these; a similar name of a tensor without an entry, or "" */
} oct_encodings_match;

/* Describes m->others in text[size], if there are any. */
void oct_encodings_say_others(const oct_encodings_match *m, char *text, size_t size);

/* Fixes the ranges of the tensors of g that the file names, or of the first inputs of the layers that it names. Several
 * entries for one tensor are united. OCT_EUSAGE if no entry matches. */
oct_status oct_encodings_take(const oct_encodings *e, const char *label, const oct_graph *g, oct_calib *into,
                              oct_encodings_match *m, oct_err *err);

/* Reads a file ("-": standard input) as a calibration table, or in any form as ranges of g's tensors; m->form is NULL
 * for a table. The table of a form has no model; whoever saves it sets one. */
oct_status oct_encodings_load(const char *path, const oct_graph *g, oct_calib **out, oct_encodings_match *m,
                              oct_err *err);

/* Writes the ranges of a table: pinned ones as they are, others as the observer chooses them. g: the graph whose layers
 * are named, where the form needs it; else NULL. *n: how many ranges, or layers. OCT_EUSAGE where a name has no place
 * in the form. */
oct_status oct_encodings_text(const oct_encoding_form *f, const oct_calib *c, oct_observer_spec observer,
                              const oct_graph *g, oct_buf *out, size_t *n, oct_err *err);

#endif
