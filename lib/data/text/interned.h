/* lib/data/text/interned.h -- texts, each kept once, so that arrays of strings can be copied and compared like numbers:
 * equal texts have one address. Several threads may use a table. */
#ifndef OCT_DATA_INTERNED_H
#define OCT_DATA_INTERNED_H

#include "base/dtype.h"

typedef struct oct_interned oct_interned;

/* The most bytes that the distinct texts of a table take. */
enum { OCT_INTERNED_BYTES = 256 << 20 };

oct_status oct_interned_create(oct_interned **t, oct_err *err);
void oct_interned_destroy(oct_interned *t); /* NULL allowed; the texts go, too */
/* The text of these n bytes in the table, to which it is added if it is new. OCT_EUNSUPPORTED: the table is full;
 * OCT_ENOMEM. t NULL, where texts have no place: OCT_EUNSUPPORTED. */
oct_status oct_intern(oct_interned *t, const char *s, size_t n, oct_str *kept, oct_err *err);

#endif
