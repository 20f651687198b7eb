/* Fuzz target: any text as a policy table that decides a small network, with statistics and without; the result keeps
 * the graph's invariants. */
#include "fuzz_decide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const oct_target *opened(const char *name, oct_target **t)
{
    oct_err err = OCT_ERR_INIT;
    if (!*t)
        need(oct_target_open(name, t, &err), &err);
    return *t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oct_target *usual, *ours;
    oct_err err = OCT_ERR_INIT;
    oct_policy *p = NULL;
    char *text = text_of(data, size);
    if (!text)
        return 0;
    if (oct_policy_create(NULL, &p, &err) == OCT_OK && oct_policy_add(p, text, "fuzz", &err) == OCT_OK) {
        decide(small_network(), p, opened("onnxruntime-x86", &usual), true);
        decide(small_network(), p, opened("octet", &ours), false);
    }
    oct_policy_destroy(p);
    oct_free(text);
    return 0;
}
