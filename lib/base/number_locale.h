/* lib/base/number_locale.h -- numbers are read and written with a decimal point, in any locale of the process.
 *
 * strtod and printf follow the locale of the thread. Programs never leave "C"; a program that uses the library may have
 * chosen one with a comma. */
#ifndef OCT_BASE_NUMBER_LOCALE_H
#define OCT_BASE_NUMBER_LOCALE_H

#include <locale.h>
#include <stdbool.h>

typedef struct oct_number_locale {
    locale_t own, before;
} oct_number_locale;

/* Gives this thread the locale "C". Returns false when out of memory. */
bool oct_number_locale_enter(oct_number_locale *l);
/* Gives it back the one before. */
void oct_number_locale_leave(oct_number_locale *l);

#endif
