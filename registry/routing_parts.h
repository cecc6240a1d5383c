/*
 * The parts of a routing, for the file that builds one (routing_build.c) and the one that asks it (routing.c).
 */
#pragma once

#include "registry/routing.h"

/* A set of providers; NULL = everybody. */
typedef uint64_t *set_t;

struct target {
    set_t then;
    uint32_t weight;
};

struct step {
    const struct condition_part *when; /* NULL: always */
    const struct str *name;
    bool force;
    bool forbid;
    set_t others; /* providers that the rule is not about; NULL: none */
    set_t then;
    struct target *targets; /* instead of `then` */
    size_t n_targets;
    uint64_t total; /* of their weights */
};

struct tag {
    struct str name;
    bool listed;   /* the rule says who has it; else the providers themselves do */
    set_t members; /* of a listed one */
};

/* The providers of one application with a tag rule, or all others. */
struct tag_group {
    set_t providers;
    const struct tag_rule *rule; /* NULL: none */
    const struct str *name;      /* of that */
    struct tag *tags;
    size_t n_tags;
    set_t in_any; /* members of any listed tag */
};

struct routing {
    size_t n;
    size_t words;
    enum dubbo_line line;
    struct step *steps;
    size_t n_steps;
    struct tag_group *groups;
    size_t n_groups;
    const struct str *own_tags; /* dubbo.tag of each provider */
    set_t untagged;             /* providers without one */
    struct str consumer_tag;
    bool consumer_force;
    bool matters;
};

static inline void put(set_t s, size_t i)
{
    s[i / 64] |= UINT64_C(1) << i % 64;
}

static inline bool has(const uint64_t *s, size_t i)
{
    return (s[i / 64] >> i % 64 & 1) != 0;
}

static inline bool is_empty(const struct routing *r, const uint64_t *s)
{
    for (size_t w = 0; w < r->words; w++) {
        if (s[w] != 0)
            return false;
    }
    return true;
}
