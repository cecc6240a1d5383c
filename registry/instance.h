/*
 * Application-level discovery as values: what an instance node, an application's metadata and the mapping of an
 * interface say (docs/REGISTRY.md section 6), and the provider URLs that follow from them.
 *
 * An instance says where it listens and which revision of its application's metadata it has; the metadata says
 * which services it exports.  Both together give provider URLs as section 2 describes them, so what reads those
 * reads these.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    INSTANCE_TEXT_MAX = 64 << 10,
    INSTANCE_ENDPOINTS_MAX = 16,
    METADATA_TEXT_MAX = 4 << 20,
    METADATA_SERVICES_MAX = 10000,
    MAPPING_TEXT_MAX = 64 << 10,
    MAPPING_APPS_MAX = 64, /* per interface */
    APP_NAME_MAX = 255,
    REVISION_MAX = 128,
};

struct instance_endpoint {
    struct str protocol;
    uint16_t port;
};

struct instance {
    struct str host; /* without brackets */
    uint16_t port;
    struct str revision; /* of its metadata; empty: it exports nothing */
    bool remote;         /* the metadata is in the registry; else the instance itself is asked */
    uint16_t ask_port;   /* where it answers such a question over dubbo; 0 = nowhere */
    const struct instance_endpoint *endpoints;
    size_t n_endpoints;
    struct str params; /* "key=value&…": what counts for a service that does not say it itself */
};

/* Texts in `a`.  False with a sentence when it is no instance. */
bool instance_parse(struct str json, struct arena *a, struct instance *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;
/* A copy in one block; the caller frees it. */
struct instance *instance_clone(const struct instance *i) NONNULL MUST_CHECK;

/* A service that an application exports over one protocol. */
struct app_service {
    struct str interface;
    struct str protocol;
    struct str path;
    uint16_t port;    /* 0 = the instance knows */
    struct str query; /* "interface=…&key=value…" */
};

struct app_metadata {
    struct app_service *services; /* sorted by interface */
    size_t n;
};

/* The JSON of /metadata/APP/REVISION, which is also what MetadataService.getMetadataInfo answers.  A service that
 * cannot be understood is left out and counted in `skipped`; false when nothing can. */
bool metadata_parse(struct str json, struct str app, struct arena *a, struct app_metadata *out,
                    size_t *skipped, struct err *e) __attribute__((nonnull(3, 4, 5, 6))) MUST_CHECK;
/* Can it be one, whoever wrote it? */
bool app_service_ok(const struct app_service *s) NONNULL;
/* The order that metadata_find needs. */
void metadata_sort(struct app_metadata *m) NONNULL;
/* A copy, texts too. */
void metadata_copy(const struct app_metadata *from, struct arena *a,
                   struct app_metadata *out) NONNULL;
/* The first service of the interface, which is followed by its others; `n` of them. */
const struct app_service *metadata_find(const struct app_metadata *m, struct str interface,
                                        size_t *n) __attribute__((nonnull(1, 3)));

/* The provider URL; nothing when the service has no port there. */
void instance_url(const struct instance *i, const struct app_service *s, struct buf *out) NONNULL;

/* Application names, without duplicates and without what cannot be one; slices of `text`.  Returns how many. */
size_t mapping_parse(struct str text, struct str apps[MAPPING_APPS_MAX])
    __attribute__((nonnull(2)));
/* Can it be an application's name, as a part of a path? */
bool app_name_ok(struct str name);
bool revision_ok(struct str revision);
