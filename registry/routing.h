/*
 * What the rules make of one list of providers: who may take a call (docs/REGISTRY.md section 5).
 *
 * Built once per list, in the registry thread, with everything worked out that does not depend on the call: a
 * then-part becomes a set of providers, a when-part about the consumer becomes yes or no.  What is left for a call
 * is to look at its method, arguments, attachments and tag, and to intersect sets.
 *
 * Immutable; routing_select may run in any thread.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "registry/rule.h"
#include "registry/url.h"

/* A provider or the consumer as rules see them: the address and all parameters of the URL. */
struct routing_party {
    struct str protocol;
    struct str host;
    uint16_t port; /* 0 = none */
    struct str path;
    const struct url_param *params;
    size_t n_params;
};

/* A tag rule is about the providers of one application. */
struct routing_tags {
    struct str application;
    const struct str *name; /* of the rule, for people; NULL = none */
    const struct tag_rule *rule;
};

/* With an application it is about that one's providers only. */
struct routing_condition {
    const struct condition_rule *rule;
    const struct str *name; /* as above */
    struct str application;
};

struct routing_rules {
    /* In the order in which they filter. */
    const struct routing_condition *conditions;
    size_t n_conditions;
    const struct routing_tags *tags;
    size_t n_tags;
    enum dubbo_line line;
};

struct routing;

/* The rules and all texts must live as long as the arena does. */
struct routing *routing_build(const struct routing_rules *rules,
                              const struct routing_party *consumer,
                              const struct routing_party *providers, size_t n, struct arena *a)
    __attribute__((nonnull(1, 2, 5))) MUST_CHECK;

struct routing_call {
    struct str method;
    bool (*argument)(void *ctx, unsigned index, struct str *out); /* as Java prints it */
    bool (*attachment)(void *ctx, struct str name, struct str *out);
    void *ctx;
    struct str tag; /* empty = none */
    bool force_tag;
    uint64_t random; /* for rules that share calls out */
};

/* Can a call's answer be anything but everybody?  False: routing_select need not be asked. */
bool routing_matters(const struct routing *r) NONNULL;
/* Clears the bits of `set` (provider i = bit i % 64 of word i / 64) that may not take the call. */
void routing_select(const struct routing *r, const struct routing_call *c, uint64_t *set) NONNULL;

/* Which filter left nobody. */
struct routing_blame {
    bool nobody;            /* somebody is left: the rest says nothing */
    const struct str *name; /* of the rule; NULL: tags of calls and providers without a rule */
    size_t n_before;        /* who were left before it */
};
/* The same, and why. */
void routing_explain(const struct routing *r, const struct routing_call *c, uint64_t *set,
                     struct routing_blame *out) NONNULL;

enum { ROUTING_WORDS_MAX = 1024 }; /* 65,536 providers */
static inline size_t routing_words(size_t n_providers)
{
    return (n_providers + 63) / 64;
}
