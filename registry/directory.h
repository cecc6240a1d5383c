/*
 * The providers of one reference at one moment: immutable, counted, shared by all threads.
 *
 * Built only in the registry thread; a worker holds one count per reference and generation, not per
 * call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/ref.h"
#include "registry/provider.h"
#include "registry/refkey.h"

enum directory_source {
    DIRECTORY_REGISTRY, /* read from the registry */
    DIRECTORY_STATIC,   /* fixed addresses of the configuration */
    DIRECTORY_SNAPSHOT, /* the saved list, not confirmed by the registry yet */
};

struct routing;
struct routing_party;
struct ruleset_entry;

/* What directory_route() adds. */
struct directory_rules {
    const struct routing *routing; /* who may take which call; NULL: everybody any */
    struct routing_party *parties; /* one per provider */
    struct ruleset_entry *v;       /* counted */
    size_t n;
    uint64_t hash;
    struct str consumer_ip; /* ours, by which the rules were read */
};

struct directory {
    struct ref_count refs;
    struct arena arena; /* owns everything below */
    struct refkey key;
    enum directory_source source;
    uint64_t generation; /* rises with each directory of the process */
    size_t n;
    struct provider *providers; /* sorted by host, port, path, group, version; no two the same */
    size_t n_usable;            /* providers with unusable == USABLE */
    size_t n_ignored[UNUSABLE_REASONS];
    struct directory_rules *rules; /* NULL: everybody may take any call */
};

/* Copies key and providers; duplicates of one identity collapse to the larger timestamp.  Count 1. */
struct directory *directory_build(const struct refkey *k, const struct provider *providers,
                                  size_t n, enum directory_source source)
    __attribute__((nonnull(1))) MUST_CHECK;
/* Would a call see any difference?  Generation and source do not count. */
bool directory_equal(const struct directory *a, const struct directory *b) NONNULL;
/* Of two that are equal: would an operator see any? */
bool directory_told_alike(const struct directory *a, const struct directory *b) NONNULL;
/* The provider that provider_same() finds the same; NULL when it is not in the directory. */
const struct provider *directory_find(const struct directory *d,
                                      const struct provider *p) NONNULL MUST_CHECK;
struct directory *directory_get(struct directory *d) NONNULL;
void directory_put(struct directory *d); /* NULL is fine */
