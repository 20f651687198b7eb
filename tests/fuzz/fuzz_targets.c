/* Fuzz target: any text as a target file, for which a small network is then decided, with statistics and without. */
#include "fuzz_decide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static oct_policy *policy_of(const char *rules)
{
    oct_err err = OCT_ERR_INIT;
    oct_policy *p = NULL;
    need(oct_policy_create(NULL, &p, &err), &err);
    need(oct_policy_add(p, rules, "fuzz", &err), &err);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oct_policy *usual, *other, *blocks;
    oct_err err = OCT_ERR_INIT;
    oct_target *t = NULL;
    char *text = text_of(data, size);
    if (!text)
        return 0;
    if (!usual) {
        usual = policy_of("");
        other = policy_of("any static u8 s8/tensor/sym\n");
        blocks = policy_of("any weight-only\n");
    }
    oct_status s = oct_target_parse(text, "fuzz", &t, &err);
    if (s == OCT_OK) {
        decide(small_network(), usual, t, true);
        decide(small_network(), other, t, true);
        decide(small_network(), usual, t, false);
        decide(small_network(), blocks, t, false);
    } else if (s != OCT_EMALFORMED && s != OCT_ENOMEM) {
        abort();
    }
    oct_target_close(t);
    oct_free(text);
    return 0;
}
