/* lib/base/words.h -- reading text files that people write: lines of words, `#` before a word begins a comment. Errors
 * name the place.
 *
 *   oct_words w = { .label = "rules.txt", .next = text };
 *   while (oct_words_line(&w)) {
 *       if (oct_words_done(&w)) continue;     // blank, or a comment alone
 *       const char *at = w.at;                // the first word begins here
 *       ...
 *
 * } */
#ifndef OCT_BASE_WORDS_H
#define OCT_BASE_WORDS_H

#include "base/status.h"

typedef struct oct_words {
    const char *label;    /* of the text, for messages: the name of the file. Borrowed, as the text is */
    const char *next;     /* what follows the line */
    const char *line;     /* start of the line */
    const char *at, *end; /* what is read next, end of the line without its newline */
    size_t number;        /* of the line, from 1; 0 before the first */
} oct_words;

/* Steps to the start of the next line; false at the end of the text. */
bool oct_words_line(oct_words *w);
/* Steps over blanks. */
void oct_words_skip(oct_words *w);
/* Steps over blanks; returns whether no word follows in the line. */
bool oct_words_done(oct_words *w);

/* OCT_EMALFORMED, "<label>:<line>:<column of at>: <reason>". */
oct_status oct_words_fault(const oct_words *w, const char *at, oct_err *err, const char *fmt, ...) OCT_PRINTF(4, 5);
/* The same, "there is no <what> '<word>'", with the known word that is nearest as a hint, or else all of them. */
oct_status oct_words_unknown(const oct_words *w, const char *at, const char *what, const char *word,
                             const char *const *known, size_t n, oct_err *err);

#endif
