/*
 * Condition rule texts (docs/REGISTRY.md section 5.2): "method = get & host = 10.* => region != hz".
 *
 * A rule has a when-part about the call and a then-part about providers, each a list of keys that must all match.
 * The four Dubbo lines read some texts differently; `enum dubbo_line` says which reading is wanted.
 *
 * Pure functions; any thread.  Texts of a parsed rule are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Whose reading of rules counts: the gateway follows DUBBO_33; the others are for rules written for them. */
enum dubbo_line { DUBBO_26, DUBBO_27, DUBBO_32, DUBBO_33 };

struct condition_key {
    struct str name;
    struct str *matches;
    size_t n_matches;
    struct str *mismatches;
    size_t n_mismatches;
};

struct condition_part {
    struct condition_key *keys;
    size_t n;
};

struct condition {
    struct condition_part when; /* no keys: always */
    struct condition_part then;
    bool forbid; /* no then-part: nobody may be called */
};

enum { CONDITION_KEYS_MAX = 64, CONDITION_VALUES_MAX = 256 };

/* False with a sentence when Dubbo would refuse the text too. */
bool condition_parse(struct str text, struct arena *a, struct condition *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;
/* One part alone, as rules of version 3.1 have them; blank and "true" have no keys. */
bool condition_parse_part(struct str text, struct arena *a, struct condition_part *out,
                          struct err *e) __attribute__((nonnull(2, 3, 4))) MUST_CHECK;

/* What a part is matched against. */
struct condition_sample {
    /* Value of a key; false = there is none. */
    bool (*value)(void *ctx, struct str key, struct str *out);
    void *ctx;
    /* What $name in a pattern stands for; NULL: nothing special. */
    bool (*reference)(void *ctx, struct str name, struct str *out);
    void *reference_ctx;
    enum dubbo_line line;
    bool is_when;
};

/* A part without keys never matches here: what it means differs between when and then. */
bool condition_part_matches(const struct condition_part *p,
                            const struct condition_sample *s) NONNULL;

/* '*' anything; one '*' prefix, suffix or both. */
bool condition_glob(struct str pattern, struct str value);

/* "arguments[2]", "attachments[name]": the text between the brackets; what follows them is ignored. */
bool condition_bracket(struct str key, struct str name, struct str *inside)
    __attribute__((nonnull(3)));
