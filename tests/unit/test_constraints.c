/* The list of constraints of a job. */
#include "unit.h"

#include "net.h"

#include "quant/place/constraints.h"

static const char because[] = "because", other[] = "another reason";

static oct_constraint at(int node, oct_constraint_kind kind, int slot, oct_constraint_from from)
{
    return (oct_constraint){ .kind = kind, .from = from, .node = node, .slot = slot, .why = because };
}

TEST(last_one_of_a_kind_counts)
{
    oct_constraints l;
    oct_arena *a = oct_arena_create();
    GOOD(oct_constraints_open(&l, a, 3, err));
    assert_null(oct_kept_float(&l, 1));
    GOOD(oct_keep_float(&l, 1, OCT_FROM_RANGES, because, err));
    GOOD(oct_keep_float(&l, 1, OCT_FROM_GOALS, other, err));
    assert_int_equal(l.n, 1);
    assert_ptr_equal(oct_kept_float(&l, 1), other);
    assert_null(oct_kept_float(&l, 0));
    assert_null(oct_kept_float(&l, 3));
    assert_null(oct_kept_float(&l, -1));
    assert_int_equal(oct_keep_float(&l, 1, OCT_FROM_GOALS, NULL, NULL), OCT_ENOMEM);
    oct_arena_destroy(a);
}

TEST(slots_are_apart)
{
    oct_constraints l;
    oct_arena *a = oct_arena_create();
    GOOD(oct_constraints_open(&l, a, 3, err));
    for (int slot = 0; slot < 3; slot++)
        for (int twice = 0; twice < 2; twice++) {
            const oct_constraint c = at(2, OCT_CONSTRAINT_OWN_PARAMS, slot, OCT_FROM_JOINS);
            GOOD(oct_constrain(&l, &c, err));
        }
    assert_int_equal(l.n, 3);
    assert_true(oct_slot_constrained(&l, 2, OCT_CONSTRAINT_OWN_PARAMS, 1));
    assert_false(oct_slot_constrained(&l, 2, OCT_CONSTRAINT_OWN_PARAMS, 3));
    assert_false(oct_slot_constrained(&l, 2, OCT_CONSTRAINT_AROUND_ZERO, 1));
    oct_arena_destroy(a);
}

/* Dropped by kind and source, at one node or at all; what is left is still found. */
TEST(sources_are_dropped)
{
    oct_constraints l;
    oct_arena *a = oct_arena_create();
    GOOD(oct_constraints_open(&l, a, 4, err));
    for (int id = 0; id < 4; id++) {
        const oct_constraint wide = at(id, OCT_CONSTRAINT_WIDE, 0, id % 2 ? OCT_FROM_GOALS : OCT_FROM_MIXED_PRECISION);
        GOOD(oct_constrain(&l, &wide, err));
        GOOD(oct_keep_float(&l, id, OCT_FROM_RUN, because, err));
    }
    oct_constraint *const before = oct_arena_memdup(a, l.v, l.n * sizeof *l.v);
    const size_t n = l.n;
    oct_constraints_drop(&l, OCT_CONSTRAINT_WIDE, OCT_FROM_GOALS, 1);
    assert_null(oct_constraint_on(&l, 1, OCT_CONSTRAINT_WIDE));
    assert_non_null(oct_constraint_on(&l, 3, OCT_CONSTRAINT_WIDE));
    oct_constraints_drop(&l, OCT_CONSTRAINT_WIDE, OCT_FROM_MIXED_PRECISION, -1);
    for (int id = 0; id < 4; id++) {
        assert_true((oct_constraint_on(&l, id, OCT_CONSTRAINT_WIDE) != NULL) == (id == 3));
        assert_ptr_equal(oct_kept_float(&l, id), because);
    }
    GOOD(oct_constraints_set(&l, before, n, err));
    for (int id = 0; id < 4; id++)
        assert_non_null(oct_constraint_on(&l, id, OCT_CONSTRAINT_WIDE));
    oct_arena_destroy(a);
}
