/*
 * The consumer node of a reference: its name is a pure function of what identifies us and the
 * reference, so that a restart finds its own node again and nothing ever accumulates
 * (docs/REGISTRY.md section 4.2).
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "registry/refkey.h"
#include "registry/url.h"

struct consumer_opts {
    struct str ip;                      /* an address, IPv6 without brackets */
    struct str application;             /* empty = left out */
    struct str instance;                /* tells gateways on one host apart; empty = left out */
    const struct url_param *parameters; /* consumer.parameters, plain text */
    size_t n_parameters;
};

/*
 * consumer://IP/INTERFACE?application=…&category=consumers&…  Keys are sorted, values
 * percent-encoded; no timestamp, no pid.  `release` carries our major version only, so that a rolling
 * upgrade keeps the name.  A parameter of ours cannot be replaced by one of `parameters`.
 */
void consumer_url(const struct refkey *k, const struct consumer_opts *o, struct buf *out) NONNULL;

/* The same as a registry node name: encoded once more. */
void consumer_node(const struct refkey *k, const struct consumer_opts *o, struct buf *out) NONNULL;
