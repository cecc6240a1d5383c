/*
 * Arguments as Java's String.valueOf() prints them: what Dubbo's consistent hash is made of.
 *
 * Equal to Java for null, booleans, numbers, characters, strings and enums.  Dates, arrays and objects have a form of our
 * own: a date as it was sent; arrays and objects as JSON without blanks, members in the order in which they were sent.
 * (Doubles have the fewest digits that tell them apart, as from Java 19 on; before, Java prints some with one more.)
 *
 * Pure functions; any thread.
 */
#pragma once

#include "base/buf.h"
#include "codec/json_args.h"

/* Appends the text of a JSON value that arg_encode() takes; of another one it appends anything. */
void java_text_add(const struct arg *arg, struct buf *out) NONNULL;
