/*
 * One HTTP request as plain data: what routes, argument sources and the door checks look at.  Filled by
 * the exchange from libmicrohttpd, by tests by hand.  All texts live as long as the request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct header {
    struct str name;
    struct str value;
};

struct request {
    struct str method;
    struct str path;              /* raw, percent-encoded, absolute form cut off */
    struct str query;             /* raw, without '?' */
    struct str version;           /* "HTTP/1.1" */
    const struct header *headers; /* every line, duplicates included, in order */
    size_t n_headers;
    struct str body;      /* complete; empty until it is read */
    struct str client_ip; /* after trusted_proxies */
    struct str id;        /* X-Request-Id of the answer */
    bool from_trusted_proxy;
};

/* A token of RFC 9110, as method and header names are. */
bool header_name_ok(struct str name);
/* No control byte but tab. */
bool header_value_ok(struct str value);

/* The first header of that name, without regard to case; STR_NONE with p == NULL when absent. */
struct str request_header(const struct request *r, struct str name) __attribute__((nonnull(1)));
/* The next one of that name from line `*from` on, which is moved behind it; start with 0. */
struct str request_header_next(const struct request *r, struct str name, size_t *from)
    __attribute__((nonnull(1, 3)));
size_t request_header_count(const struct request *r, struct str name) __attribute__((nonnull(1)));

/* Percent-decodes; plus_is_blank for query strings.  False for a bad escape, %00 or invalid UTF-8. */
bool request_decode(struct str raw, bool plus_is_blank, struct arena *a, struct str *out)
    __attribute__((nonnull(3, 4))) MUST_CHECK;

/* The next value of a query parameter, still encoded; start with *rest = r->query.  A name that cannot be
 * decoded is nobody's.  False at the end. */
bool request_query_next(struct str *rest, struct str name, struct str *raw)
    __attribute__((nonnull(1, 3))) MUST_CHECK;
/* Value number `nth` (from 0) of a query parameter, decoded.  False when there are fewer, or the escape
 * is bad (`*bad` is set). */
bool request_query(const struct request *r, struct str name, size_t nth, struct arena *a,
                   struct str *out, bool *bad) __attribute__((nonnull(1, 4, 5, 6))) MUST_CHECK;
