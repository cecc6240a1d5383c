/*
 * What the two files of the vector runner share.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Encodes `json` for the declared type; true when the bytes are exactly `want`. */
bool vectors_encode(const char *declared, struct str json, struct str want, struct err *why);
enum vectors_call { VECTORS_CALL_OK, VECTORS_CALL_REFUSED, VECTORS_CALL_OTHER };
/* Encodes the generic call whose nine values these are; OTHER: it is none that the gateway would send. */
enum vectors_call vectors_request(const json_t *values, struct buf *out, struct err *why);
/* The bytes of a recipe with `bytes` and `byte_i`. */
void vectors_add_bytes(const json_t *gen, struct buf *out);
/* A big value as JSON: the text in quotes, or Base64. */
void vectors_add_json(const struct buf *value, bool text, struct buf *out);
