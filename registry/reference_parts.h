/*
 * What reference.c (states, bookkeeping, who waits) and reference_list.c (lists) share.
 */
#pragma once

#include "registry/reference.h"

struct outgoing;

/* Configured, and no list of it yet. */
bool reference_is_waiting(const struct reference *ref) NONNULL;
/* Keeps the number of such references, which readiness depends on; `before` = was it one? */
void reference_recount(struct reference *ref, bool before) NONNULL;
/* Sends it to every worker that waits; then nobody waits. */
void reference_answer_waiting(struct reference *ref, const struct outgoing *o) NONNULL;
