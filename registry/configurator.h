/*
 * Configurators: what operators write over provider URLs (docs/REGISTRY.md section 5.6): override:// and absent://
 * URLs of 2.6, and the *.configurators nodes of 2.7 and 3.x.
 *
 * Pure functions; any thread.  Everything of a configurator is in the arena it was read into.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "registry/refkey.h"
#include "registry/rule.h"
#include "registry/url.h"

/* A condition of version 3.0 on one text. */
struct conf_match {
    struct str exact;
    struct str prefix;
    struct str wildcard;
    struct str regex;
    bool noempty;
    bool empty;
};

struct conf_param_match {
    struct str key;
    struct conf_match value;
};

struct configurator {
    struct str host; /* as written; 0.0.0.0 = any consumer, or the provider when there is a port */
    uint16_t port;   /* 0 = none: the host is a consumer's */
    bool absent;     /* only where the parameter is missing */
    bool published;  /* read from a node of 2.7 or 3.x, where a port never means a provider */
    int priority;
    struct str side;        /* empty = any */
    struct str application; /* of the consumer; empty or "*" = any */
    struct str interface;   /* empty or "*" = any */
    struct str group;
    struct str version;
    struct url_param *conditions; /* ~KEY=VALUE */
    size_t n_conditions;
    struct str *provider_addresses;
    size_t n_provider_addresses;
    /* version 3.0 */
    struct str consumer_wildcard; /* match.address */
    struct str consumer_exact;
    struct str provider_wildcard; /* match.providerAddress */
    struct str provider_exact;
    struct conf_match *apps; /* one of them */
    size_t n_apps;
    struct conf_match *services;
    size_t n_services;
    struct conf_param_match *params; /* all of them */
    size_t n_params;
    /* what is written */
    struct url_param *sets;
    size_t n_sets;
};

struct configurators {
    struct configurator *v;
    size_t n;
    size_t cap;
};

enum { CONFIGURATORS_MAX = 1024, CONFIGURATOR_PARAMS_MAX = 128 };

/* Adds what a decoded child of …/configurators says. */
enum rule_result configurator_from_url(struct str url, enum dubbo_line line, struct arena *a,
                                       struct configurators *into, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;
/* Adds what a *.configurators node says. */
enum rule_result configurators_from_yaml(struct str text, enum dubbo_line line, struct arena *a,
                                         struct configurators *into, struct err *e)
    __attribute__((nonnull(3, 4, 5))) MUST_CHECK;
/* The order in which those of 2.6 apply: the unspecific host first, then by priority. */
void configurators_sort(struct configurators *c) NONNULL;

/* A provider URL as a consumer sees it; its parameters may be changed and added. */
struct conf_url {
    struct str host;
    uint16_t port;
    struct url_param *params;
    size_t n;
    size_t cap; /* room in `params` */
};

struct conf_consumer {
    struct str ip;
    struct str application;
    struct refkey key;
};

/* Applies them in order, as `line` does.  Parameters beyond the room of `u` are left out. */
void configurators_apply(const struct configurators *c, const struct conf_consumer *consumer,
                         enum dubbo_line line, struct conf_url *u) NONNULL;
