/* lib/base/words.h -- reads text files that people write: lines of words, `#` before a word begins a comment. Errors
 * name the place, "<label>:<line>:<column>: <reason>", and are OCT_EMALFORMED.
 *
 * A format is a table of keys. The line `key value...` puts its value into a member of a record, or a function reads
 * it:
 *
 *   static const oct_words_key keys[] = {                 // outside functions
 *       { "name", .read = read_name, .required = true },
 *       { "order", OCT_WORDS_CHOICE(rule, by_anchor, "order", "cell", "anchor") },
 *       { "score", OCT_WORDS_NUMBER(rule, score, 0, 1) },
 *   };
 *   oct_words w = { .label = "rules.txt", .next = text, .arena = arena };
 *   OCT_TRY(oct_words_read(&w, &(oct_words_format){ .key = keys, .n = OCT_COUNT(keys) }, &r, err));
 *
 * Formats whose lines have no keys call oct_words_line and the functions for words themselves. */
#ifndef OCT_BASE_WORDS_H
#define OCT_BASE_WORDS_H

#include "base/mem.h"

typedef struct oct_words {
    const char *label;    /* of the text, for messages: the name of the file. Borrowed, as the text is */
    const char *next;     /* what follows the line */
    const char *limit;    /* end of the text; NULL: a NUL ends it */
    oct_arena *arena;     /* copies of words are made here; NULL: none are asked for */
    const char *line;     /* start of the line */
    const char *at, *end; /* what is read next, end of the line without its newline */
    size_t number;        /* of the line, from 1; 0 before the first */
    uint64_t given;       /* bit i: the text has had a line with key i of its format */
} oct_words;

/* ---- lines ---- */

/* Steps to the start of the next line; false at the end of the text. A byte order mark before the first is no part of
 * it. */
bool oct_words_line(oct_words *w);
/* Steps over blanks (a carriage return is one). */
void oct_words_skip(oct_words *w);
/* Steps over blanks; returns whether no word follows in the line. */
bool oct_words_done(oct_words *w);
/* Fails unless the line has ended. */
oct_status oct_words_end(oct_words *w, oct_err *err);

/* The place `at`, which is in the line, and a reason. */
oct_status oct_words_fault(const oct_words *w, const char *at, oct_err *err, const char *fmt, ...) OCT_PRINTF(4, 5);
/* The fault of a value that another function has read: its text after the place, and its hint. OCT_ENOMEM stays. */
oct_status oct_words_misplaced(const oct_words *w, const char *at, const oct_err *what, oct_err *err);
/* "there is no <what> '<word>'" (or, of "", "the <what> is missing"), with the known word that is nearest as a hint, or
 * else all of them. */
oct_status oct_words_unknown(const oct_words *w, const char *at, const char *what, const char *word,
                             const char *const *known, size_t n, oct_err *err);

/* ---- words ---- */

typedef struct oct_word {
    const char *at;
    size_t n; /* 0: there is none */
} oct_word;

/* The next word of the line. */
oct_word oct_words_take(oct_words *w);
/* The same as a copy, "" at the end of the line. */
oct_status oct_words_next(oct_words *w, const char **word, const char **at, oct_err *err);
/* A copy of the rest of the line, without blanks around it. what: named where there is none. */
oct_status oct_words_rest(oct_words *w, const char *what, const char **text, oct_err *err);
/* The text of the double quotes that follow; \" \\ and \xNN are escapes. */
oct_status oct_words_quoted(oct_words *w, char **text, oct_err *err);
/* The next word is `word`. */
oct_status oct_words_expect(oct_words *w, const char *word, oct_err *err);
/* The next word is one of a table's (or the fault is that of oct_words_unknown); *i: which. Each of its n elements, of
 * `size` bytes, begins with a pointer to the word. */
oct_status oct_words_one_of(oct_words *w, const char *what, const void *known, size_t n, size_t size, size_t *i,
                            oct_err *err);
#define OCT_WORDS_ONE_OF(w, what, table, i, err) \
    oct_words_one_of(w, what, table, OCT_COUNT(table), sizeof *(table), i, err)

/* The next word is a decimal number of this range; a whole one; a whole one from 0 on with all 64 bits. */
oct_status oct_words_number(oct_words *w, double least, double most, double *v, oct_err *err);
oct_status oct_words_whole(oct_words *w, double least, double most, int64_t *v, oct_err *err);
oct_status oct_words_count(oct_words *w, uint64_t most, uint64_t *v, oct_err *err);
/* The next word is a finite decimal number, rounded to float32 once. */
oct_status oct_words_f32(oct_words *w, float *v, oct_err *err);

bool oct_word_is(oct_word word, const char *s);
/* Whether a word is a finite decimal number, without the other forms that strtod takes. */
bool oct_word_number(oct_word word, double *v);
/* Whether it is a whole decimal number of 0 to most, in digits alone. */
bool oct_word_count(oct_word word, uint64_t most, uint64_t *v);
/* The value of a hexadecimal digit, in small letters; -1: it is none. */
int oct_hex_digit(char c);

/* ---- formats ---- */

/* Reads the value of a key, up to the end of the line. self: of oct_words_read. */
typedef oct_status (*oct_words_fn)(oct_words *w, void *self, oct_err *err);

typedef struct oct_words_key {
    const char *word;
    oct_words_fn read; /* NULL: the value goes into a member; without one the rest of the line is for people alone */
    bool again;        /* several lines may have this key */
    bool required;     /* one line must have it */
    unsigned of;       /* for `allow` of the format */
    /* The member of self: a bool or enum that becomes the place of a word in a list that ends with NULL; or a double,
     * int or int64_t of a range. */
    size_t member, size;
    const char *what, *const *words; /* what: NULL: the key */
    int first;                       /* the value of the first word */
    double least, most;
    bool whole;
} oct_words_key;

#define OCT_WORDS_MEMBER(type, name) .member = offsetof(type, name), .size = sizeof(((type *)0)->name)
#define OCT_WORDS_CHOICE(type, name, kind, ...)                                  \
    OCT_WORDS_MEMBER(type, name), .what = (kind), .words = (const char *const[]) \
    {                                                                            \
        __VA_ARGS__, NULL                                                        \
    }
#define OCT_WORDS_NUMBER(type, name, from, to) OCT_WORDS_MEMBER(type, name), .least = (from), .most = (to)
#define OCT_WORDS_WHOLE(type, name, from, to) OCT_WORDS_NUMBER(type, name, from, to), .whole = true

typedef struct oct_words_format {
    const oct_words_key *key;
    size_t n;   /* at most 64 */
    bool again; /* of several lines with a key the last holds */
    /* Whether a key, at `at`, may stand here, before its value is read; NULL: each may. */
    oct_status (*allow)(const oct_words *w, const char *at, const oct_words_key *key, const void *self, oct_err *err);
} oct_words_format;

/* Reads one line, from its key to its end. */
oct_status oct_words_key_line(oct_words *w, const oct_words_format *f, void *self, oct_err *err);
/* Fails if a key is missing that is required. */
oct_status oct_words_complete(const oct_words *w, const oct_words_format *f, oct_err *err);
/* Reads all lines. */
oct_status oct_words_read(oct_words *w, const oct_words_format *f, void *self, oct_err *err);

#endif
