/* lib/api/convert/session_guess.h -- what samples and outputs may be, as far as the model tells. */
#ifndef OCT_API_SESSION_GUESS_H
#define OCT_API_SESSION_GUESS_H

#include "api/convert/session_int.h"

/* What the samples are, as far as the model tells. */
typedef struct oct_picture {
    bool is, last; /* they are pictures; and their channels are last */
    bool padded;   /* boxes come out, in pixels: the picture is to keep its proportions */
    int64_t c, h, w;
    oct_pixels pixels; /* what the model takes */
} oct_picture;

/* Guesses from the type and the shape of the only input whether samples are pictures, and of which size. */
bool oct_guess_picture(const oct_graph *g, oct_picture *p);
/* Appends " --data PHOTOS/ --preprocess imagenet", or samples of another kind. */
void oct_guess_data(const oct_graph *g, const oct_picture *p, oct_buf *b);
/* " (--preprocess is a guess)" where those words are one: nothing in the model says what its pixels are, or how a
 * detector's pictures get their size. */
const char *oct_guess_said(const oct_picture *p);
/* Appends the command of qeval that compares both models: on the same samples, where there are any. */
void oct_guess_comparison(const oct_session *s, oct_buf *b);
/* Writes items of the answer: questions about what was not given, each with the command that is likely. Whether one of
 * these commands compares both models. */
bool oct_guess_questions(const oct_session *s, oct_json *j);

#endif
