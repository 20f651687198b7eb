/* lib/base/buf.h -- a growing byte buffer for building text. The first failed allocation is
 * remembered, so that a long build checks once, at the end. */
#ifndef OCT_BASE_BUF_H
#define OCT_BASE_BUF_H

#include "base/status.h"

typedef struct oct_buf {
    char *data; /* always ends in NUL when not NULL; the NUL is not counted */
    size_t len, cap;
    bool failed; /* out of memory; later writes do nothing */
} oct_buf;

#define OCT_BUF_INIT { NULL, 0, 0, false }

void oct_buf_add(oct_buf *b, const void *p, size_t n);
void oct_buf_puts(oct_buf *b, const char *s);
void oct_buf_printf(oct_buf *b, const char *fmt, ...) OCT_PRINTF(2, 3);
/* Takes all behind the first n bytes away; n is at most len. */
void oct_buf_cut(oct_buf *b, size_t n);
void oct_buf_free(oct_buf *b);
/* The text; "" when empty or failed. Borrowed until the next change. */
const char *oct_buf_str(const oct_buf *b);

/* Shortest decimal that reads back as the same float32 (tables and JSON); whole numbers below 1e7 (1e15) have all their
 * digits. dst holds 32 bytes. */
const char *oct_f32_text(char dst[32], float f);
/* The same for double. */
const char *oct_f64_text(char dst[32], double f);

/* Edit distance, for "did you mean" hints; names longer than 63 bytes are cut. */
int oct_edit_distance(const char *a, const char *b);
/* The names nearest to a word, nearest first; at equal distance, those tried first. To be initialised as { .word = ...,
 * .most = ... }. */
enum { OCT_NEAREST = 3 };
typedef struct oct_nearest {
    const char *word;
    int most;                      /* no name that is farther away counts */
    const char *name[OCT_NEAREST]; /* NULL: none; borrowed */
    int distance[OCT_NEAREST];
    size_t n;
} oct_nearest;
void oct_nearest_try(oct_nearest *n, const char *name);
/* The hint "did you mean 'a', 'b' or 'c'?", of at most `most` names, and `more` behind it; without names `more` alone
 * (NULL: nothing). */
void oct_nearest_hint(const oct_nearest *n, size_t most, const char *more, oct_err *err);

#endif
