/* lib/observers/calib_digits.h -- numbers in base 32, for the counts of a histogram. The last digit of a number comes
 * from one alphabet, and all digits before it from another, so that no space is needed between numbers. */
#ifndef OCT_OBSERVERS_CALIB_DIGITS_H
#define OCT_OBSERVERS_CALIB_DIGITS_H

#define OCT_DIGITS_LAST "0123456789abcdefghijklmnopqrstuv"
#define OCT_DIGITS_MORE "ABCDEFGHIJKLMNOPQRSTUVWXYZwxyz+-"

#endif
