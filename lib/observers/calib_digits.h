/* lib/observers/calib_digits.h -- base 32 of the histogram's counts: a number's last digit comes from one
 * alphabet, all before from the other, so that numbers need no space between them. */
#ifndef OCT_OBSERVERS_CALIB_DIGITS_H
#define OCT_OBSERVERS_CALIB_DIGITS_H

#define OCT_DIGITS_LAST "0123456789abcdefghijklmnopqrstuv"
#define OCT_DIGITS_MORE "ABCDEFGHIJKLMNOPQRSTUVWXYZwxyz+-"

#endif
