/* lib/base/size_text.h -- sizes as people write them. */
#ifndef OCT_BASE_SIZE_TEXT_H
#define OCT_BASE_SIZE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* "80000", "12MB" (1 MB = 1000000), "1.5GiB": *bytes, at least 1; "25%" (at most 1000): *share, 0.25. The other one
 * becomes 0. False: neither. */
bool oct_size_text(const char *text, uint64_t *bytes, double *share);

#endif
