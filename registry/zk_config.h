/*
 * Configuration nodes, for the file that reads them (kind_zookeeper_config.c) and the one that knows whom they concern
 * (kind_zookeeper_ruleset.c).  Registry thread.
 */
#pragma once

#include "registry/rules.h"
#include "registry/zk.h"

struct zk_config_node {
    UT_hash_handle hh;
    enum rule_node kind;
    struct str key; /* in `name`, without the kind */
    bool present;   /* in the last list of children */
    bool wanted;    /* concerns a reference of ours */
    bool known;     /* read once */
    bool in_flight;
    bool watch_set;
    struct list dirty; /* zk_config.dirty: to be read */
    uint64_t not_before_ms;
    struct rules *rules; /* in force, before it is known those of the last run; NULL = none */
    char *bad;           /* why what stands there now is not in force; NULL = it is */
    char name[];
};

/* NULL: the directory has none, or it is not read and none was saved. */
struct zk_config_node *zk_config_find(struct zk *z, struct str name) __attribute__((nonnull(1)));
/* To be read and watched from now on. */
void zk_config_want(struct zk *z, struct zk_config_node *n) NONNULL;

/* ---- kind_zookeeper_ruleset.c ---- */
bool zk_config_concerns_us(const struct zk *z, const struct zk_config_node *n) NONNULL MUST_CHECK;
/* Reads the lists again that the rule is about: the texts of provider URLs are not kept. */
void zk_config_reread(struct zk *z, const struct zk_config_node *n) NONNULL;
void zk_ruleset_free(struct zk *z) NONNULL;
