/* lib/base/document.h -- a JSON document in memory. The functions of base/json.h make it, and those read it who print
 * it in some form; its text is one of these forms.
 *
 *   oct_document *d = oct_document_create();
 *   oct_json j = { .to = d };
 *   oct_json_open(&j, NULL, '{');
 *   ...
 *   oct_item_number(oct_document_root(d), "latency_ms.median")
 *
 * Numbers keep NaN and infinities, for which the text alone has null. */
#ifndef OCT_BASE_DOCUMENT_H
#define OCT_BASE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oct_document oct_document;
typedef struct oct_item oct_item; /* a value in a document, borrowed from it */

oct_document *oct_document_create(void);    /* NULL: out of memory */
void oct_document_destroy(oct_document *d); /* NULL allowed */
/* What was written; NULL: nothing, or memory ran out. */
const oct_item *oct_document_root(const oct_document *d);

/* The member of an object; a path leads on: "models.1.latency_ms.median". NULL: absent; "": x itself. A name
 * may have any character where it is given alone. */
const oct_item *oct_item_member(const oct_item *object, const char *name);
const oct_item *oct_item_at(const oct_item *x, const char *path);
/* The name of a member; NULL: x is in a list. */
const char *oct_item_name(const oct_item *x);
/* The value at a path, as what it is asked for; what is absent or of another kind is NaN, 0, NULL, false and 0.
 * As a number, true is 1 and false is 0. */
double oct_item_number(const oct_item *x, const char *path);
int64_t oct_item_whole(const oct_item *x, const char *path);
const char *oct_item_text(const oct_item *x, const char *path);
bool oct_item_true(const oct_item *x, const char *path);
size_t oct_item_count(const oct_item *x, const char *path); /* of a list or an object, how many it has */

bool oct_item_is_list(const oct_item *x);
/* Whether there is something to show: neither absent nor null, false, 0, NaN or empty. */
bool oct_item_is_any(const oct_item *x);

/* The first value of a list or an object (x: NULL), and the one behind x; NULL at the end.
 *   for (const oct_item *x = NULL; (x = oct_item_next(list, x));) */
const oct_item *oct_item_next(const oct_item *list, const oct_item *x);
/* The i-th value; NULL: there are fewer. It walks over those before it. */
const oct_item *oct_item_of(const oct_item *list, size_t i);

#endif
