/*
 * The key table: one row per configuration key.  It drives the parser, the ranges, -T, the JSON Schema, the
 * manual page and the error texts (docs: dubbogate.yaml.5, generated from it).
 *
 * Threads: control, and the commands.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/yaml.h"
#include "gateway/settings.h"

enum key_type {
    KEY_U32,
    KEY_MS,   /* uint32_t milliseconds */
    KEY_MS64, /* uint64_t milliseconds */
    KEY_SIZE, /* size_t bytes */
    KEY_BOOL,
    KEY_DOUBLE,
    KEY_CHOICE, /* uint32_t index into choices */
    KEY_FLAGS,  /* list of choices: uint32_t bits, 1 << (flag_base + index) */
    KEY_TEXT,   /* struct str */
    KEY_TEXTS,  /* struct text_list */
    KEY_TEXT_MAP,
    KEY_SOURCE_MAP,
    KEY_BLOCK,  /* a block of keys inside the same struct */
    KEY_BLOCKS, /* list of blocks: pointer and count */
    KEY_EMBED,  /* the rows of `table` stand here too */
};

struct key_context {
    struct settings *s;
    struct config_errors *errs;
    struct arena *a;
};

struct key {
    const char *name;
    enum key_type type;
    size_t offset;
    size_t count_offset; /* KEY_BLOCKS: of the size_t; KEY_TEXT &c.: 0 */
    size_t set_offset;   /* of a bool that says "given"; SIZE_MAX = none */
    const char *def;     /* as in the file; NULL = required, or none for lists and maps */
    uint64_t lo, hi;
    const char *const *choices; /* ends with NULL; KEY_TEXT: one of them or its default */
    unsigned flag_base;
    const struct key *table; /* KEY_BLOCK, KEY_BLOCKS, KEY_EMBED */
    size_t size;             /* KEY_BLOCKS: of one element */
    bool required;
    bool masked;      /* KEY_TEXT: an address whose user and password are not shown */
    bool restart;     /* a change takes effect after a restart */
    const char *form; /* "a name: …": what a text must be, for errors and the manual */
    bool (*check)(struct str text); /* KEY_TEXT, KEY_TEXTS: is it of that form? */
    /* KEY_BLOCKS: before the element's own keys are read (inheritance) */
    void (*init)(struct key_context *c, void *element, const struct yaml_node *node,
                 const void *parent);
    const char *help;
};

extern const struct key keys_top[];

/* Defaults, then the file's keys.  Errors are collected; values in error keep their default. */
void keys_apply(struct key_context *c, const struct key *table, void *base,
                const struct yaml_node *node, const char *where) NONNULL;
void keys_defaults(struct key_context *c, const struct key *table, void *base) NONNULL;

/* Every key in effect as YAML with its origin. */
void keys_dump(const struct settings *s, struct buf *out) NONNULL;
/* The value of one row (lists of blocks with all their keys), without origins. */
void keys_print_row(const struct key *k, const void *base, struct buf *out) NONNULL;
void keys_schema(struct buf *out) NONNULL;
void keys_man(struct buf *out) NONNULL;

bool keys_parse_ms(struct str text, uint64_t *ms) __attribute__((nonnull(2)));
bool keys_parse_size(struct str text, uint64_t *bytes) __attribute__((nonnull(2)));
bool keys_is_name(struct str s);
bool keys_parse_source(struct str text, struct source *out) __attribute__((nonnull(2)));
