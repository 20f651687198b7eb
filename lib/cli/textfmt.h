/* lib/cli/textfmt.h -- text for people: display width of UTF-8, wrapping, and what the
 * terminal can show. */
#ifndef OCT_CLI_TEXTFMT_H
#define OCT_CLI_TEXTFMT_H

#include "base/number_text.h"
#include "base/utf8.h"

#include <stdio.h>

/* Decodes one character of the NUL-terminated s and returns its length in bytes (at least 1, 0 at the
 * end). *cp is its code point; a byte that is not valid UTF-8 gives U+FFFD and length 1. */
int oct_utf8_next(const char *s, uint32_t *cp);
/* Terminal columns of a text without unsafe characters (base/utf8.h): wide East Asian characters take 2, combining
 * marks 0. */
int oct_utf8_width(const char *s);
/* The number of bytes of the longest prefix of s that takes at most `columns`. */
size_t oct_utf8_fit(const char *s, int columns);

/* Prints for people, as fprintf does, but every character of the result in its safe form (oct_char_clean): the one way
 * in which texts with names from files reach a stream. Newlines may be at the beginning and the end of fmt only; any
 * other is assumed to come from a name. Text beyond 4000 bytes is replaced by "...". Allocates nothing. */
void oct_print(FILE *f, const char *fmt, ...) OCT_PRINTF(2, 3);
void oct_vprint(FILE *f, const char *fmt, va_list ap);

/* Appends s word by word in lines of at most `width` columns; lines after the first start with `indent`
 * spaces, the first is taken to start at column `at`. A newline in s ends a line. Ends in no newline. */
void oct_text_wrap(oct_buf *b, const char *s, int at, int indent, int width);

/* Prints a paragraph, safe as by oct_print, in lines of at most `width` columns, and a newline; all lines begin at
 * column `indent`, the first behind a head (NULL: none) of at most that many columns. */
void oct_print_hanging(FILE *f, const char *head, int indent, const char *text, int width);
/* The same for a text that is formatted, of at most 4000 bytes, in lines of the terminal's width; in one line where f
 * leads to no terminal. */
void oct_print_line(FILE *f, const char *head, int indent, const char *fmt, ...) OCT_PRINTF(4, 5);
/* Prints a command of the shell, in lines of at most `width` columns where its words allow that: it is cut between
 * options, never within a word or between an option and its value, and continues behind a backslash. */
void oct_print_command(FILE *f, const char *command, int indent, int width);

/* The width in columns of the terminal to which f leads; 0 if f is not a terminal. COLUMNS in the environment overrides
 * the terminal's own number. */
int oct_term_width(FILE *f);
/* Whether f is a terminal with a UTF-8 locale (the first that is set of LC_ALL, LC_CTYPE, LANG), or with another one,
 * where bytes of UTF-8 may be control characters. */
bool oct_term_utf8(FILE *f);
bool oct_term_ascii(FILE *f);

/* Styles of text on a terminal. */
typedef enum oct_style { OCT_STYLE_NONE, OCT_STYLE_BOLD, OCT_STYLE_WARNING, OCT_STYLE_ERROR } oct_style;
/* Prints the sequence that begins a style or ends all (OCT_STYLE_NONE). Prints nothing if f is not a terminal, TERM is
 * "dumb" or absent, or NO_COLOR is set and not empty (no-color.org). */
void oct_term_style(FILE *f, oct_style style);

#endif
