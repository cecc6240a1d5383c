/*
 * Rules that operators publish (docs/REGISTRY.md section 5): condition rules and tag rules of the configuration
 * nodes, and the router URLs of 2.6.  Here they are read; routing.h says what they do to a list of providers.
 *
 * A rule that does not parse leaves the former one in force, so reading has three ends.
 *
 * Pure functions; any thread.  Everything of a rule is in the arena it was read into.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/yaml.h"
#include "registry/condition.h"

enum rule_result {
    RULE_OK = 0,
    RULE_NONE, /* empty, disabled, or none of our business: as if it were not there */
    RULE_BAD,  /* the sentence says why */
};

enum {
    RULE_STEPS_MAX = 256, /* of a rule; routers of an interface */
    RULE_TARGETS_MAX = 64,
    RULE_TAGS_MAX = 256,
    RULE_ADDRESSES_MAX = 4096
};

/* One of the subsets that a rule of version 3.1 shares calls out to. */
struct rule_target {
    struct condition_part then; /* no keys: every provider */
    uint32_t weight;
};

struct rule_step {
    struct condition_part when; /* no keys: always */
    struct condition_part then;
    bool forbid;
    struct rule_target *targets; /* instead of `then`; NULL = not a rule of version 3.1 */
    size_t n_targets;
};

/* Steps filter one after the other. */
struct condition_rule {
    bool force; /* nobody rather than the wrong one */
    int priority;
    struct rule_step *steps;
    size_t n;
};

/* The root of a rule in YAML; an empty text is RULE_NONE. */
enum rule_result rule_root(struct str text, struct arena *a, const struct yaml_node **root,
                           struct err *e) __attribute__((nonnull(2, 3, 4))) MUST_CHECK;

/* Content of a *.condition-router node. */
enum rule_result condition_rule_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                          struct condition_rule *out, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;
/* One rule text, as the tests and router URLs have it. */
enum rule_result condition_rule_from_text(struct str text, bool force, struct arena *a,
                                          struct condition_rule *out, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;
/* A decoded child of …/routers; `own_ip` = the consumer's. */
enum rule_result condition_rule_from_url(struct str url, struct str own_ip, struct arena *a,
                                         struct condition_rule *out, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;

enum tag_match_kind {
    TAG_EXACT,
    TAG_PREFIX,
    TAG_REGEX,
    TAG_WILDCARD,
    TAG_NOEMPTY,
    TAG_EMPTY,
    TAG_MATCH_KINDS
};

struct tag_match {
    struct str key; /* a provider's parameter */
    enum tag_match_kind kind;
    struct str value;
};

struct rule_tag {
    struct str name;
    struct str *addresses;
    size_t n_addresses;
    struct tag_match *matches; /* all must match */
    size_t n_matches;
};

struct tag_rule {
    bool force;
    struct rule_tag *tags;
    size_t n;
};

/* Content of a *.tag-router node. */
enum rule_result tag_rule_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                    struct tag_rule *out, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;

/* "10.0.0.1", "10.0.0.1:20880", "10.0.*.1-9:20880", "10.0.0.0/24", "0.0.0.0:20880". */
bool rule_address_matches(struct str pattern, struct str host, uint16_t port);
/* Does the provider's value (STR_NONE = it has none) satisfy `m`? */
bool tag_match_value(const struct tag_match *m, struct str value) __attribute__((nonnull(1)));
