/*
 * One provider as a value: what a Dubbo provider URL says, with every parameter that a consumer has
 * to honour (docs/REGISTRY.md section 2.4).  Parsed fields only, no URL text is kept.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "registry/refkey.h"

/* Why a listed provider is not called. */
enum unusable {
    USABLE = 0,
    UNUSABLE_PROTOCOL,      /* tri, rest, … */
    UNUSABLE_SERIALIZATION, /* hessian2 is not among what it takes */
    UNUSABLE_DISABLED,      /* disabled=true or enabled=false */
    UNUSABLE_TLS,           /* ssl-enabled=true */
    UNUSABLE_ADDRESS,       /* outside provider_networks, or the name does not resolve */
    UNUSABLE_REASONS,       /* must stay last */
};

/* What lists a provider; nothing: the saved list. */
enum {
    FOUND_INTERFACE = 1,     /* its node below the interface */
    FOUND_INSTANCE = 2,      /* an instance of its application */
    FOUND_CONFIGURATION = 4, /* the operator */
};

struct ruleset;
struct conf_consumer;
struct routing_party;
struct url_param;

/* What a URL that does not say it means. */
enum { PROVIDER_WEIGHT = 100, PROVIDER_WARMUP_MS = 600000, PROVIDER_PAYLOAD = 8 << 20 };

struct method_param {
    struct str method;    /* empty: of all methods; only of what no field of the provider holds */
    uint32_t timeout_ms;  /* 0 = not given */
    int32_t weight;       /* -1 = not given */
    uint32_t hash_nodes;  /* 0 = not given */
    bool timeout_written; /* by a configurator: no setting of the consumer's counts against it */
    struct str hash_arguments;
    struct str loadbalance;
};

/* What only few providers have. */
struct provider_params {
    struct str
        others; /* "KEY=VALUE&KEY=VALUE": what nobody but a rule asks for, without what every Dubbo provider says */
    struct method_param methods[];
};

union address {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct provider {
    struct str host; /* as in the URL, without brackets */
    uint16_t port;
    uint16_t n_method_params;
    enum unusable unusable : 8;
    bool
        unlisted : 1; /* gone from the registry's list under circumstances that do not prove that it is
                           gone (docs/REGISTRY.md section 9.4): usable only over a live connection */
    bool dynamic         : 1; /* false: the node stays when the provider dies */
    bool deprecated      : 1;
    bool timeout_written : 1; /* as in method_param */
    unsigned char found  : 3; /* FOUND_… */
    uint16_t connections;     /* 0 = not given */
    union address addr;       /* resolved; sa.sa_family == AF_UNSPEC until then */
    uint32_t timeout_ms;      /* 0 = not given */
    struct str interface;     /* parameter `interface`, else the path; empty for a bare address */
    struct str path;          /* URL path; differs from the interface for renamed services */
    struct str version;       /* of the service */
    struct str group;
    struct str release; /* Dubbo version of the provider, e.g. "3.2.15", empty for 2.6 */
    struct str application;
    struct str token;
    struct str loadbalance;
    struct str tag;
    struct str methods;    /* "*" or a comma list; empty = unknown */
    uint64_t timestamp_ms; /* wall clock, start of warm-up; 0 = none */
    uint32_t weight;       /* default 100 */
    uint32_t warmup_ms;    /* default 600000 */
    uint32_t payload;      /* largest request body the provider takes; default 8388608 */
    uint32_t heartbeat_ms; /* 0 = not given */
    const struct provider_params *params; /* NULL: no method parameters and no others */
};
_Static_assert(sizeof(struct provider) <= 248, "a provider");

/*
 * `url` is a decoded provider URL (registry node names are percent-encoded once more).  All texts of
 * `out` are copied into `a`.  False with a sentence when the URL is no URL, over 8 KiB, has no valid
 * host and port, or stands for something else (category other than providers); a provider that is
 * merely not for us comes back with `unusable` set.  `addr` is left AF_UNSPEC, `unlisted` false.
 */
bool provider_from_url(struct str url, struct arena *a, struct provider *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;

/* The same after the configurators of `rules` have been written over the URL's parameters, for this consumer.
 * `party` = the provider as routing sees it, texts in `a` and in `url`; NULL: not wanted. */
bool provider_from_url_under(struct str url, const struct ruleset *rules,
                             const struct conf_consumer *consumer, struct arena *a,
                             struct provider *out, struct routing_party *party, struct err *e)
    __attribute__((nonnull(2, 3, 4, 5, 7))) MUST_CHECK;

/* The same for a fixed address of the configuration: "dubbo://" may be missing, and what the URL does
 * not say (path, interface, version, group) is what the reference says. */
bool provider_from_address(struct str text, const struct refkey *k, struct arena *a,
                           struct provider *out, struct err *e)
    __attribute__((nonnull(2, 3, 4, 5))) MUST_CHECK;

/* ---- provider_print.c ---- */
/* A dubbo:// URL from which provider_from_url makes the same provider again, for the saved list, behind it those of `more`
 * that are not in it yet: parameters that only rules ask for.  Not for providers that are unusable for another reason than
 * their address. */
void provider_print(const struct provider *p, const struct url_param *more, size_t n_more,
                    struct buf *out) __attribute__((nonnull(1, 4)));
/* Is it kept in a field, or what every Dubbo provider says of itself? */
bool provider_param_is_known(struct str key) MUST_CHECK;

/* Does the provider answer to this reference?  docs/REGISTRY.md section 2.3. */
bool provider_matches(const struct provider *p, const struct refkey *k) NONNULL;

/* The order of directories: by host, port, path, group, version. */
int provider_compare(const struct provider *a, const struct provider *b) NONNULL MUST_CHECK;

/* Same candidate: equal in that order. */
bool provider_same(const struct provider *a, const struct provider *b) NONNULL;

/* METHOD.timeout, else timeout, else 0.  `written`: a configurator's, which beats a consumer's own (section 2.5). */
uint32_t provider_timeout_ms(const struct provider *p, struct str method, bool *written)
    __attribute__((nonnull(1, 3)));

/* Weight now: METHOD.weight or weight, lowered during warm-up as Dubbo does (section 8.1). */
uint32_t provider_weight(const struct provider *p, struct str method, uint64_t wall_now_ms)
    __attribute__((nonnull(1)));

/* METHOD.loadbalance, else loadbalance; empty = not given. */
struct str provider_loadbalance(const struct provider *p, struct str method)
    __attribute__((nonnull(1)));
/* METHOD.hash.nodes, else hash.nodes, else 0; and the same of hash.arguments, empty = not given. */
void provider_hash(const struct provider *p, struct str method, uint32_t *nodes,
                   struct str *arguments) __attribute__((nonnull(1, 3, 4)));

/* "interface", "instance", "both", "configuration" or "saved". */
const char *provider_found_name(const struct provider *p) NONNULL;
const char *unusable_name(enum unusable u); /* "tri"… for admin and metrics: protocol, … */
