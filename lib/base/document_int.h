/* lib/base/document_int.h -- the values of a document, for those who write it. */
#ifndef OCT_BASE_DOCUMENT_INT_H
#define OCT_BASE_DOCUMENT_INT_H

#include "base/document.h"

typedef enum oct_item_kind {
    OCT_ITEM_NULL,
    OCT_ITEM_FALSE,
    OCT_ITEM_TRUE,
    OCT_ITEM_WHOLE,
    OCT_ITEM_NUMBER,
    OCT_ITEM_TEXT,
    OCT_ITEM_LIST,
    OCT_ITEM_OBJECT
} oct_item_kind;

struct oct_item {
    const char *key; /* NULL: it is in a list, or the root */
    union {
        const char *text;
        double number;
        int64_t whole;
    } of;
    uint32_t span;  /* how many values it takes, with itself and all inside */
    uint32_t count; /* how many stand in it directly */
    oct_item_kind kind;
};

/* Adds a value whose text and key are borrowed, and opens and closes a list or an object. */
void oct_document_add(oct_document *d, oct_item x);
void oct_document_open(oct_document *d, const char *key, char kind);
void oct_document_close(oct_document *d);

#endif
