/* The table of signatures.inc, and what is asked of it. */
#include "ops/signature.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const oct_signature all[] = {
#define OCT_SIGNATURE(domain, op, since, in, out, ...) { domain, op, since, in, out, { __VA_ARGS__ } },
#include "ops/signatures.inc"
#undef OCT_SIGNATURE
};

static int compare(const oct_signature *s, const char *domain, const char *op)
{
    const int c = strcmp(s->domain, domain);
    return c ? c : strcmp(s->op, op);
}

/* The first line of an operator, or NULL; the table is sorted by domain, name and version. */
static const oct_signature *first_of(const char *domain, const char *op)
{
    size_t low = 0, high = OCT_COUNT(all);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(&all[middle], domain, op) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < OCT_COUNT(all) && compare(&all[low], domain, op) == 0 ? &all[low] : NULL;
}

const oct_signature *oct_signature_find(const char *domain, const char *op, int64_t opset)
{
    const oct_signature *found = NULL;
    for (const oct_signature *s = first_of(domain, op); s && s < all + OCT_COUNT(all) && compare(s, domain, op) == 0;
         s++)
        if (s->since <= opset)
            found = s;
    return found;
}

char oct_signature_letter(const char *list, int i)
{
    const size_t n = strlen(list);
    if (!n)
        return 0;
    const char end = list[n - 1];
    if (isalpha((unsigned char)end))
        return (size_t)i < n ? list[i] : 0;
    return (size_t)i + 2 < n ? list[i] : end == '*' ? list[n - 2] : 0;
}

bool oct_signature_takes(const oct_signature *s, int slot, oct_dtype t)
{
    const char letter = oct_signature_letter(s->in, slot);
    const uint32_t set = letter ? s->set[letter - 'A'] : 0;
    return set == 0 || set >> t & 1;
}

int64_t oct_signature_newest(void)
{
    return OCT_SIGNATURES_OPSET;
}

int64_t oct_signature_first(const char *op)
{
    const oct_signature *s = first_of("", op);
    return s ? s->since : 0;
}

const char *oct_signature_nearest(const char *op)
{
    const char *nearest = NULL;
    int best = (int)(strlen(op) / 2) + 1;
    for (size_t i = 0; i < OCT_COUNT(all); i++) {
        const int d = all[i].domain[0] ? best : oct_edit_distance(op, all[i].op);
        if (d < best) {
            best = d;
            nearest = all[i].op;
        }
    }
    return nearest;
}
