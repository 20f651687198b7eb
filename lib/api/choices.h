/* lib/api/choices.h -- what there is to choose from, for options and --help. The functions are those of the layers that
 * they belong to, whose headers say more of them; choices.c sees that they are declared alike. */
#ifndef OCT_API_CHOICES_H
#define OCT_API_CHOICES_H

#include "base/status.h"

/* Name i and its summary; NULL: there are no more. */
const char *oct_metric_names(size_t i, const char **summary);
const char *oct_decode_builtin(size_t i, const char **summary);
/* All in one text: "minmax, avg-minmax, ..." */
const char *oct_observer_names(void);
const char *oct_encoding_form_names(void);
/* Whether a name is one of files with samples. */
bool oct_looks_like_data(const char *path);

#endif
