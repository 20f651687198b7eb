/* lib/ops/signature.h -- all operators that ONNX defines, whether Octet has them or not, and the types that they
 * accept. */
#ifndef OCT_OPS_SIGNATURE_H
#define OCT_OPS_SIGNATURE_H

#include "base/dtype.h"

#include <stdbool.h>

/* One version of an operator. in and out have a letter for each operand. Operands with the same letter have the same
 * type, from the `set` of that letter (bit t: element type t is in it; 0: any). After the last letter, '*' repeats that
 * operand with the same type, '~' with any types. A line without inputs and outputs says only that the operator exists.
 */
typedef struct oct_signature {
    const char *domain, *op;
    int since;
    const char *in, *out;
    uint32_t set[24];
} oct_signature;

/* The signature of an operator of the default domain or of com.microsoft in an opset; NULL: there is no such
 * operator. */
const oct_signature *oct_signature_find(const char *domain, const char *op, int64_t opset);
/* The letter of operand i in a signature's list; 0: it may have any type. */
char oct_signature_letter(const char *list, int i);
/* Whether input `slot` may be of type t. */
bool oct_signature_takes(const oct_signature *s, int slot, oct_dtype t);
/* The newest opset of the default domain whose operators are all known. */
int64_t oct_signature_newest(void);
/* The first opset of the default domain that has the operator; 0: none has. */
int64_t oct_signature_first(const char *op);
/* The operator of the default domain whose name is nearest, or NULL when none is near. */
const char *oct_signature_nearest(const char *op);

#endif
