/* lib/base/sha256.h -- SHA-256 (FIPS 180-4), so that files can be told from each other for good, and by other programs
 * (sha256sum) too. */
#ifndef OCT_BASE_SHA256_H
#define OCT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { OCT_SHA256_BYTES = 32, OCT_SHA256_TEXT = 65 };

typedef struct oct_sha256 {
    uint32_t h[8];
    uint64_t n; /* bytes taken so far */
    unsigned char block[64];
} oct_sha256;

void oct_sha256_begin(oct_sha256 *s);
void oct_sha256_add(oct_sha256 *s, const void *data, size_t n);
/* The digest of all that was added. Nothing can be added behind it. */
void oct_sha256_end(oct_sha256 *s, unsigned char digest[OCT_SHA256_BYTES]);

/* 64 hexadecimal digits and NUL. Returns text. */
char *oct_sha256_text(const unsigned char digest[OCT_SHA256_BYTES], char text[OCT_SHA256_TEXT]);

#endif
