#include "base/number_locale.h"

bool oct_number_locale_enter(oct_number_locale *l)
{
    *l = (oct_number_locale){ .own = newlocale(LC_ALL_MASK, "C", (locale_t)0) };
    if (!l->own)
        return false;
    l->before = uselocale(l->own);
    return true;
}

void oct_number_locale_leave(oct_number_locale *l)
{
    if (!l->own)
        return;
    uselocale(l->before);
    freelocale(l->own);
    l->own = (locale_t)0;
}
