/*
 * What is known of the methods behind a reference: one definition per application (docs/REGISTRY.md section 7.1).
 *
 * Asked for after a list: when the providers of an application are others than before, and once more a little later,
 * because Dubbo writes its definition beside the registration, not ahead of it.  One that was known stays until
 * another was read: a registry that lost its data has no definitions until its providers restart.
 *
 * Registry thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "registry/definition.h"

struct reference;
struct registry;
struct telnet_ask;

enum {
    DEFINITIONS_FOLLOW_MS = 1000, /* calls without types wait so long for the first ones */
    DEFINITIONS_AGAIN_MS = 3000,  /* after the first read of a change */
    DEFINITIONS_APART_MS = 2000,  /* reads that calls ask for */
    DEFINITIONS_TELNET_TRIES = 5, /* providers that do not answer, each later than the one before */
    DEFINITIONS_BYTES_MAX = 64 << 20, /* of all references */
};

/* Where a definition is from. */
enum definition_source {
    DEFINITION_REPORT, /* the metadata report of 2.7 and 3.x in the registry */
    DEFINITION_TELNET, /* a provider of 2.6, where there is no report (section 7.5) */
    DEFINITION_SAVED,  /* known by the last run, not read since */
};

struct described {
    char *application;             /* NULL = free */
    struct definition *definition; /* NULL = none known */
    uint32_t n_providers;          /* of the list */
    enum definition_source source : 8;
    bool last_time                : 1; /* `again_ms` is the second read after a change */
    bool telnet_wanted            : 1; /* if the next read finds no report */
    bool telnet_asked             : 1; /* a provider is asked: a worker always answers */
    uint8_t telnet_tries;              /* without an answer, since the change */
    uint64_t providers;                /* which they are: a sum over them */
    int64_t mzxid;                     /* of the node that was read; 0 = none */
    uint64_t asked_ms;                 /* the read under way; 0 = none */
    uint64_t again_ms;                 /* when to read again; 0 = not planned */
};

struct reference_definitions {
    struct definitions *set; /* of `v`, as the workers have it; NULL = none */
    uint64_t follow_ms;      /* the first ones are waited for since; 0 = no */
    uint64_t read_ms;        /* last read */
    bool changed;            /* `set` is to be made and told */
    uint32_t n;              /* of `v`, up to DEFINITIONS_MAX: most services have one application */
    struct described v[];
};

/* After ref->directory was set: asks for what is not known. */
void reference_describe(struct reference *ref) NONNULL;
/* A call found them wrong. */
void reference_describe_again(struct reference *ref) NONNULL;
/* Will the mail of the next directory be followed by definitions? */
bool reference_definitions_follow(const struct reference *ref) NONNULL;
/* Sends them to one worker, WORKERS_MAX = to all if they changed; nothing while they are waited for. */
void reference_tell_definitions(struct reference *ref, unsigned worker) NONNULL;
/* Something is planned. */
bool reference_definitions_due(const struct reference *ref) NONNULL;
void reference_definitions_tick(struct reference *ref, uint64_t now_ms) NONNULL;
void reference_definitions_free(struct reference *ref) NONNULL;
/* May a definition of `n` bytes be kept beside those of all references? */
bool definitions_have_room(struct registry *r, size_t n) NONNULL MUST_CHECK;
const char *definition_source_name(enum definition_source s);
/* From kinds.  What was read of an application; text.p == NULL: it has no node. */
void reference_on_definition(struct reference *ref, struct str application, struct str text,
                             int64_t mzxid) __attribute__((nonnull(1)));
/* What a provider answered by telnet; text.p == NULL: nothing, and ask->why is the reason. */
void reference_on_telnet(struct reference *ref, const struct telnet_ask *ask, struct str text)
    __attribute__((nonnull(1, 2)));
