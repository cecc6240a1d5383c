/*
 * Values of one request by their sources (path.X, query.X, header.X, body.a.b, …), as text or as JSON.
 * Private to the binding of arguments and attachments.
 *
 * Threads: the worker's.  Memory: everything that is made lives in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/problem.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "gateway/settings.h"

struct binder {
    const struct route_match *m; /* NULL: direct form */
    const struct request *r;
    struct arena *a;
    struct problem *p;
    struct str body; /* without BOM and blanks; checked once a part of it is wanted */
    bool body_checked;
    bool duplicate_keys_last; /* false: a repeated key is refused */
    unsigned max_depth;
};

/* Sets the problem "SOURCE: why"; always false. */
bool binder_fail(struct binder *b, enum outcome o, struct str source, const char *why)
    __attribute__((nonnull(1, 4)));
bool binder_fail_duplicate(struct binder *b, struct str key) __attribute__((nonnull(1)));

/* Is the body one whole JSON value, or empty?  False: the problem names line and column. */
bool binder_check_body(struct binder *b) NONNULL MUST_CHECK;

/* A buffer of `n` bytes of the arena; more than that never fits. */
void binder_buf(struct binder *b, size_t n, struct buf *out) NONNULL;
/* Size of a text as a JSON string, quotes included; never too small. */
size_t binder_quoted_size(struct str text);
/* A text as a JSON string. */
struct str binder_quoted(struct binder *b, struct str text) __attribute__((nonnull(1)));

/* The plain text of a source; p == NULL: absent, or not a scalar.  False: the problem is set. */
bool binder_text(struct binder *b, const struct source *s, struct str *text) NONNULL MUST_CHECK;
/* The JSON value of a source; n == 0: absent.  `list`: all values of a parameter or header as an array.
 * False: the problem is set. */
bool binder_json(struct binder *b, const struct source *s, bool list,
                 struct str *json) NONNULL MUST_CHECK;
