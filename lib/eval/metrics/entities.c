/* Entities as conlleval finds them: also where a model begins one with I. */
#include "eval/metrics/entities.h"

#include "base/mem.h"

#include <string.h>

typedef struct entity {
    const char *type;
    size_t first, last;
} entity;

/* The letter of a tag, and its type: what follows the first dash. */
static char letter_of(const char *const *tag, size_t n_tags, int32_t at, const char **type)
{
    const char *t = at >= 0 && (size_t)at < n_tags ? tag[at] : "O";
    if (!*t)
        t = "O";
    const char *dash = strchr(t + 1, '-');
    *type = dash ? dash + 1 : t[1] ? t + 1 : "_";
    return *t;
}

static bool begins(char before, const char *type_before, char now, const char *type)
{
    if (now == 'B' || now == 'S')
        return true;
    if ((before == 'E' || before == 'S' || before == 'O') && (now == 'E' || now == 'I'))
        return true;
    return now != 'O' && now != '.' && strcmp(type_before, type) != 0;
}

static bool ends(char before, const char *type_before, char now, const char *type)
{
    if (before == 'E' || before == 'S')
        return true;
    if ((before == 'B' || before == 'I') && (now == 'B' || now == 'S' || now == 'O'))
        return true;
    return before != 'O' && before != '.' && strcmp(type_before, type) != 0;
}

/* Writes the entities, at most one for each place and one more. */
static size_t find(const char *const *tag, size_t n_tags, const int32_t *v, size_t n, entity *e)
{
    size_t count = 0, first = 0;
    char before = 'O';
    const char *type_before = "";
    for (size_t i = 0; i <= n; i++) {
        const char *type;
        const char now = letter_of(tag, n_tags, i < n ? v[i] : -1, &type);
        if (ends(before, type_before, now, type))
            e[count++] = (entity){ type_before, first, i - 1 };
        if (begins(before, type_before, now, type))
            first = i;
        before = now;
        type_before = type;
    }
    return count;
}

oct_status oct_entities_compare(const char *const *tag, size_t n_tags, const int32_t *want, const int32_t *found,
                                size_t n, uint32_t *hit, uint32_t *extra, uint32_t *missed, oct_err *err)
{
    entity *a = oct_calloc(2 * (n + 2), sizeof *a), *b = a ? a + n + 2 : NULL;
    if (!a)
        return oct_nomem(err);
    const size_t n_a = find(tag, n_tags, want, n, a), n_b = find(tag, n_tags, found, n, b);
    uint32_t same = 0;
    for (size_t i = 0, k = 0; i < n_a && k < n_b;) { /* both ascend */
        if (a[i].first == b[k].first && a[i].last == b[k].last && strcmp(a[i].type, b[k].type) == 0)
            same++;
        if (a[i].last <= b[k].last)
            i++;
        else
            k++;
    }
    *hit += same;
    *extra += (uint32_t)n_b - same;
    *missed += (uint32_t)n_a - same;
    oct_free(a);
    return OCT_OK;
}
