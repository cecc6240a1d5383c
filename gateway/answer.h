/*
 * From the outcome of a call to the HTTP answer: status, headers, body (docs/OPERATIONS.md sections 2.4 and 2.5).
 *
 * Threads: the worker's.  Header texts end with a NUL (the HTTP library wants C strings) and live as long as
 * the answer or are static.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/settings.h"

enum {
    ANSWER_HEADERS_MAX = 64,
    ANSWER_ATTACHMENTS_MAX = 32768, /* bytes of all returned attachments together */
};

struct answer {
    unsigned status;
    struct header headers[ANSWER_HEADERS_MAX];
    size_t n_headers;
    size_t attachment_bytes;
};

/* Status 200, Content-Type, X-Request-Id, Server, Cache-Control. */
void answer_begin(struct answer *a, struct str request_id) __attribute__((nonnull(1)));
/* Replaces a header of that name. */
void answer_header(struct answer *a, struct str name, struct str value) __attribute__((nonnull(1)));
/* 202 and 204: there is no body whose type could be told. */
void answer_empty(struct answer *a, unsigned status) NONNULL;

/*
 * A result: `body` holds its JSON text, nothing for null and void, and is changed in place (unwrap, envelope).
 * False: it is a problem after all (success test, null_status 404): `p` is set, to be answered by answer_problem.
 */
bool answer_value(struct answer *a, const struct policy *policy, const struct route *route,
                  struct buf *body, struct arena *arena, struct problem *p)
    __attribute__((nonnull(1, 2, 4, 5, 6))) MUST_CHECK;

/* Maps an exception by the route's rules; sets p->mapped_status and mapped_code. */
void answer_map_exception(const struct route *route, struct problem *p) __attribute__((nonnull(2)));
/* problem+json, or the standard envelope's error form. */
void answer_problem(struct answer *a, const struct policy *policy, const struct problem *p,
                    struct str request_id, struct arena *arena, struct buf *body)
    __attribute__((nonnull(1, 3, 5, 6)));
/* Status that answer_problem gives. */
unsigned problem_status(const struct problem *p) NONNULL;
const char *problem_code(const struct problem *p) NONNULL;

/* An attachment of the provider that the route returns: X-Dubbo-NAME. */
void answer_attachment(struct answer *a, const struct route *route, struct str name,
                       struct str value, struct arena *arena) __attribute__((nonnull(1, 5)));
