/*
 * The saved lists, STATE_DIR/references.json: what was known of the registries, for a start while they
 * are down (docs/REGISTRY.md section 9.4, docs/OPERATIONS.md).
 *
 * Mode 0600, because provider URLs hold tokens.  Written to a temporary file that is synced and renamed, so
 * a kill at any moment leaves the old file or the new one.  A checksum covers every byte: a file that does
 * not match is ignored as a whole.  An entry that a later version wrote and we cannot read is ignored
 * alone.  Entries stream in both directions: memory does not grow with the number of references.
 *
 * Registry thread only; blocks for the disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "registry/instance.h"
#include "registry/refkey.h"

enum {
    STORE_BYTES_MAX = 64 << 20,
    STORE_ENTRIES_MAX = 100000,
    STORE_URLS_MAX = 20000, /* per entry, and names of one node that are read */
    STORE_REGISTRIES_MAX = 64,
    STORE_NAME_MAX = 64,
    STORE_REVISIONS_MAX = 20000,
    STORE_DEFINITIONS_MAX = 100000,
    STORE_APPLICATION_MAX = 512,
    STORE_RULES_MAX = 100000,
    STORE_RULE_NODE_MAX = 1024,
    STORE_RULE_MAX = 1 << 20, /* a node of ZooKeeper is not longer */
};

/* What is remembered of a registry as a whole. */
struct store_registry {
    struct str name;
    int64_t max_zxid;       /* the largest one ever seen */
    int64_t root_czxid;     /* of the root node; 0 = unknown */
    struct str consumer_ip; /* our own address, which rules may name; empty = unknown */
};

struct store_entry {
    struct str registry; /* name */
    struct refkey key;
    int64_t czxid; /* of the providers node; 0 = unknown */
    uint64_t saved_wall_ms;
    const struct str *urls; /* provider URLs, decoded; provider_print writes them */
    size_t n_urls;
    struct str apps; /* of its mapping, with commas; empty = none */
};

/* What a revision of an application exports; it never changes. */
struct store_revision {
    struct str registry; /* name */
    struct str app;
    struct str revision;
    struct app_metadata services;
};

/* What an application published of the methods of a reference, of which an entry stands before. */
struct store_definition {
    struct str registry;
    struct refkey key;
    struct str application;
    struct str text; /* written: definition_print's; read: JSON, which definition_read judges */
};

/* Rules as an operator published them. */
struct store_rule {
    struct str registry; /* name */
    struct str node; /* of a configuration node, or INTERFACE/routers, INTERFACE/configurators */
    struct str text; /* its content; of the latter URLs, each with a line's end */
};

/* ---- writing ---- */
struct store_writer;

/* Opens the temporary file; NULL with a sentence. */
struct store_writer *store_begin(const char *dir, struct err *e) NONNULL MUST_CHECK;
/* Registries come first, then entries, revisions, rules, definitions.  False when the file is full
 * (or failed before): the entry is left out, the file stays valid. */
bool store_put_registry(struct store_writer *w, const struct store_registry *r) NONNULL;
bool store_put_entry(struct store_writer *w, const struct store_entry *s) NONNULL;
bool store_put_revision(struct store_writer *w, const struct store_revision *v) NONNULL;
bool store_put_rule(struct store_writer *w, const struct store_rule *v) NONNULL;
bool store_put_definition(struct store_writer *w, const struct store_definition *d) NONNULL;
/* Syncs, renames, syncs the directory and frees `w`.  False with the first error; the old file is then
 * still there. */
bool store_commit(struct store_writer *w, struct err *e) NONNULL MUST_CHECK;
/* Frees `w` and removes the temporary file. */
void store_abort(struct store_writer *w); /* NULL is fine */

/* Can a file be written there?  For the configuration check. */
bool store_writable(const char *dir, struct err *e) NONNULL MUST_CHECK;

/* ---- reading ---- */
enum store_result {
    STORE_OK = 0,
    STORE_ABSENT,  /* no file: a first start */
    STORE_DAMAGED, /* checksum, form or version; nothing was delivered */
    STORE_IO,      /* not readable */
};

struct store_reader {
    void (*on_registry)(void *ctx, const struct store_registry *r);
    void (*on_entry)(void *ctx, const struct store_entry *s);       /* valid during the call only */
    void (*on_revision)(void *ctx, const struct store_revision *v); /* as well */
    void (*on_rule)(void *ctx, const struct store_rule *v);         /* as well */
    void (*on_definition)(void *ctx, const struct store_definition *d); /* as well */
    void *ctx;
    size_t n_ignored; /* set by store_load: entries that could not be read */
};

/* The checksum is verified before the first callback. */
enum store_result store_load(const char *dir, struct store_reader *r,
                             struct err *e) NONNULL MUST_CHECK;

/* The same for a text in memory; never STORE_ABSENT or STORE_IO. */
enum store_result store_read(struct str text, struct store_reader *r, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;

/* The checksum (FNV-1a, 64 bits: one changed byte always changes it), continued from `sum`. */
#define STORE_SUM_START UINT64_C(0xcbf29ce484222325)
uint64_t store_sum(uint64_t sum, struct str text);
