/*
 * What libmicrohttpd lets through and a gateway must not (docs/ROBUSTNESS.md section 2.2, decision R7):
 * one pass over the request line and the header lines, before anything else looks at them.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/problem.h"
#include "gateway/request.h"

struct door_facts {
    struct str raw_target; /* as it stood in the request line */
    size_t header_size;    /* bytes of request line and headers as the library counted them */
    size_t max_body;       /* limits.request_body: no route may allow more */
    bool chunked_allowed;  /* limits.chunked_requests */
};

enum door_result {
    DOOR_OK = 0,
    DOOR_OK_CLOSE, /* serve it, then close: something is hidden in the head, so nothing behind it is read
                      as a request */
    DOOR_REFUSED,      /* `p` says why; answer and close */
    DOOR_OPTIONS_STAR, /* OPTIONS *: 204 */
};

struct door_verdict {
    bool has_body; /* a length or a coding was announced */
    bool chunked;
    uint64_t content_length; /* 0 when chunked or none */
};

/* Sets r->path and r->query from the raw target. */
enum door_result door_check(struct request *r, const struct door_facts *facts,
                            struct door_verdict *v, struct problem *p) NONNULL MUST_CHECK;
