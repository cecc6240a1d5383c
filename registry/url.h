/*
 * Dubbo URLs: scheme://[user[:password]@]host[:port][/path][?key=value&key=value]
 * (docs/REGISTRY.md section 2.1).
 *
 * Registry node names are URLs encoded once more in the manner of java.net.URLEncoder.  Values inside a
 * URL are kept as they stand: Dubbo encodes some of them and leaves others raw, so a reader decodes a
 * value a second time only where its meaning needs it.
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
    URL_MAX = 8192,          /* bytes of a decoded URL */
    URL_NODE_MAX = 3 * 8192, /* bytes of a node name */
    URL_PARAMS_MAX = 512,    /* parameters of one URL */
    URL_HOST_MAX = 253 + 48, /* a name, or an IPv6 address with a scope */
};

struct url_param {
    struct str key;
    struct str value; /* raw; empty for a key without '=' */
};

/* Some 16 KiB: keep one per thread or on the stack, not in lists.  Texts point into the text parsed. */
struct url {
    struct str scheme;
    struct str user; /* empty = none */
    struct str password;
    struct str
        authority;   /* host:port as written, without user: registry addresses may list several */
    struct str host; /* without brackets; not checked, see url_host_ok */
    uint16_t port;   /* 0 = none given */
    struct str path; /* without the leading '/' */
    size_t n_params;
    struct url_param params[URL_PARAMS_MAX];
};

/* `text` must stay.  False for: over URL_MAX bytes, control bytes or broken UTF-8, no scheme, no host, a
 * port outside 1-65535, more than URL_PARAMS_MAX parameters. */
bool url_parse(struct str text, struct url *out, struct err *e)
    __attribute__((nonnull(2, 3))) MUST_CHECK;

/* The address with *** in place of a user and password: for logs and pages. */
void url_print_masked(struct str address, struct buf *out) __attribute__((nonnull(2)));

/* The last value of `key`, else that of `default.KEY` (2.6 publishes provider defaults so); p == NULL
 * when neither is there. */
struct str url_param(const struct url *u, struct str key) __attribute__((nonnull(1)));

/* The value of `key` in the text of a URL that need not be well-formed; empty when it is not there. */
struct str url_peek(struct str text, struct str key);

/* An IP address (IPv6 may carry a %scope) or a host name of letters, digits, '.', '-' and '_'. */
bool url_host_ok(struct str host);

enum { URL_HOST_PORT_CAP = URL_HOST_MAX + 9 }; /* bytes that hold every one */
/* host:port or [host]:port, the host cut so that it fits into `cap` bytes with the NUL; returns its length. */
size_t url_print_host_port(struct str host, uint16_t port, char *out, size_t cap)
    __attribute__((nonnull(3)));
/* host:port with brackets around an IPv6 address. */
void url_add_host_port(struct str host, uint16_t port, struct buf *out) __attribute__((nonnull(3)));

/* As java.net.URLEncoder: A-Za-z0-9 . - * _ stay, a space becomes '+', the rest %XX in upper case. */
void url_encode(struct str s, struct buf *out) __attribute__((nonnull(2)));
/* The reverse: '+' is a space.  False when a '%' is not followed by two hex digits; `out` then holds a
 * part. */
bool url_decode(struct str s, struct buf *out) __attribute__((nonnull(2))) MUST_CHECK;
/* One node name, decoded into `a`.  False with a sentence when it is too long or malformed. */
bool url_decode_node(struct str node, struct arena *a, struct str *out, struct err *e)
    __attribute__((nonnull(2, 3, 4))) MUST_CHECK;

/* Valid UTF-8 (no surrogates) without control bytes: may appear in logs and JSON as it is. */
bool url_text_ok(struct str s);
