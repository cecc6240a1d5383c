/*
 * Published rules as they are kept and handed on (docs/REGISTRY.md section 5): one `rules` for one node of the
 * registry, or for the children of one; a `ruleset` names all that apply to one reference.
 *
 * A `rules` is read in the registry thread, immutable from then on, and counted: directories hold those by which
 * their calls are routed.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/ref.h"
#include "registry/configurator.h"
#include "registry/rule.h"

struct rules {
    struct ref_count refs;
    struct arena arena;
    uint64_t hash;   /* of the texts: the same rules have the same */
    struct str name; /* of the node, for people */
    struct buf urls; /* of 2.6, each with a line's end */
    struct str text; /* what it was read from, for the saved lists: the node's content, or `urls` */
    struct configurators overrides;
    struct condition_rule *conditions; /* in the order in which they filter */
    size_t n_conditions;
    size_t n_left_out;     /* routers beyond RULE_STEPS_MAX */
    struct tag_rule *tags; /* NULL = none */
};

/* What a configuration node is about, by the end of its name. */
enum rule_node {
    RULE_NODE_NONE, /* nothing that concerns us */
    RULE_NODE_CONFIGURATORS,
    RULE_NODE_CONDITION,
    RULE_NODE_TAG,
    RULE_NODE_SCRIPT, /* never run */
};
/* "a.B:1.0.0:g.condition-router": `key` is "a.B:1.0.0:g". */
enum rule_node rule_node_of(struct str name, struct str *key) __attribute__((nonnull(2)));

/* What the content of the configuration node `name` says.  `out` is set, to NULL too, unless the result is RULE_BAD; count 1. */
enum rule_result rules_from_node(struct str name, enum rule_node kind, struct str content,
                                 struct rules **out, struct err *e)
    __attribute__((nonnull(4, 5))) MUST_CHECK;

/* The rules of children of …/configurators and …/routers, added one by one. */
struct rules *rules_new(struct str name) MUST_CHECK;
/* A decoded child in the arena of `r`; RULE_BAD leaves the others as they are.  `own_ip` = the consumer's. */
enum rule_result rules_add_url(struct rules *r, enum rule_node kind, struct str url,
                               struct str own_ip, struct err *e)
    __attribute__((nonnull(1, 5))) MUST_CHECK;
/* Puts them into the order in which they apply.  NULL, and `r` is gone, when there are none. */
struct rules *rules_finish(struct rules *r) NONNULL MUST_CHECK;
/* `text` of such rules to the same rules again; NULL when there are none. */
struct rules *rules_from_saved_urls(struct str name, enum rule_node kind, struct str text,
                                    struct str own_ip) MUST_CHECK;

struct rules *rules_get(struct rules *r); /* NULL is fine */
void rules_put(struct rules *r);          /* NULL is fine */

/* `rules` about the providers of `application`; empty = about all. */
struct ruleset_entry {
    struct str application;
    struct rules *rules;
};

enum { RULESET_APPS_MAX = 64, RULESET_MAX = 2 * RULESET_APPS_MAX + 8 };

/* In the order in which they apply, of at most RULESET_APPS_MAX applications.  Borrows. */
struct ruleset {
    struct ruleset_entry v[RULESET_MAX];
    size_t n;
};

/* Nothing when `rules` is NULL. */
void ruleset_add(struct ruleset *s, struct rules *rules, struct str application)
    __attribute__((nonnull(1)));
/* Has it conditions or tags: does it decide call by call? */
bool ruleset_routes(const struct ruleset *s) NONNULL;
