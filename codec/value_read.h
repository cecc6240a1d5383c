/*
 * Java classes that have a better text than their fields: one row per class (docs/HESSIAN2.md section 8,
 * docs/JSON.md part B1).  A row names the fields it needs ("slots") and prints their values as one JSON value.
 *
 * The same rows serve objects on the wire (C … O) and, for `map_shaped` ones, the maps of getters that a
 * generic call makes of UUID, Instant and of 2.6's java.time (decision: rebuilt by default).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { VALUE_SLOTS = 8 };

struct hs2_json;
struct value_slots;

struct value_class {
    const char *name;
    const char *slots[VALUE_SLOTS]; /* field names; NULL ends */
    /* Prints one JSON value; false when the fields do not make sense (then the fields are printed). */
    bool (*print)(struct hs2_json *j, const struct value_slots *s);
};

/* NULL when the class has no row. */
const struct value_class *value_find(struct str class);
/* The same for maps of getters. */
const struct value_class *value_find_map(struct str class);
/* Index of the slot of that field, -1 = none. */
int8_t value_slot(const struct value_class *v, struct str field) __attribute__((nonnull(1)));
