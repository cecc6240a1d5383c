/*
 * Puts into a directory what rules make of it (docs/REGISTRY.md section 5).  Registry thread; before anybody else
 * sees the directory.
 */
#pragma once

#include "registry/directory.h"
#include "registry/routing.h"

struct ruleset_entry;

struct routing_source {
    const struct ruleset_entry *rules;
    size_t n_rules;
    const struct routing_party *consumer;
    /* What the directory was built from, and for each the party of its URL.  `parties` NULL: no URL is at hand. */
    const struct provider *listed;
    const struct routing_party *parties;
    size_t n;
    const struct directory
        *old; /* whose parties serve for providers that are not listed; NULL = none */
};

/* Is one of its providers only for calls with a tag? */
bool directory_has_tags(const struct directory *d) NONNULL MUST_CHECK;

/* Sets `routing` when a call's way depends on rules or tags; holds the rules then. */
void directory_route(struct directory *d, const struct routing_source *src) NONNULL;
