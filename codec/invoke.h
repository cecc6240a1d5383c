/*
 * The body of a generic request (docs/PROTOCOL.md section 5), in the three pieces that have different
 * lives: the prefix belongs to a reference, the middle to a call, the attachments partly to a
 * provider.  Hessian2 strings and untyped maps carry no references, so the finished body is the
 * plain concatenation prefix + middle + attachments.
 *
 * Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "codec/json_args.h"

/* Fields 1 to 5: "2.0.2", interface, version ("0.0.0" when empty), "$invoke", its descriptor. */
void invoke_prefix(struct str interface, struct str version, struct buf *out)
    __attribute__((nonnull(3)));

/* The same of an ordinary call, which names the method itself; its arguments follow as plain values. */
void invoke_typed(struct str interface, struct str version, struct str method,
                  struct str descriptor, struct buf *out) __attribute__((nonnull(5)));
/* One such argument. */
void invoke_string(struct str value, struct buf *out) __attribute__((nonnull(2)));

/*
 * Fields 6 to 8: method, parameter types (null unless every args[i].type is set), arguments.
 * On failure `out` is truncated to where it was and `e` says what the client has to mend.
 */
enum args_result invoke_middle(struct str method, const struct arg *args, size_t n_args,
                               const struct args_opts *opts, struct buf *out, struct args_error *e)
    __attribute__((nonnull(4, 5, 6))) MUST_CHECK;

/* Field 9.  begin, any number of entries, end. */
void invoke_attachments_begin(struct buf *out) NONNULL;
/* False, and nothing written, when a text is not valid UTF-8. */
bool invoke_attachment(struct str name, struct str value, struct buf *out)
    __attribute__((nonnull(3)));
/* The value of an entry written by invoke_attachment(); a character beyond the 16-bit ones is left in the form that
 * Java writes, two of three bytes.  False: there is none. */
bool invoke_attachment_find(struct str entries, struct str name, struct str *value)
    __attribute__((nonnull(3))) MUST_CHECK;
void invoke_attachments_end(struct buf *out) NONNULL;
