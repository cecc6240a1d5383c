/*
 * What the readers of definitions share: definition.c (the metadata report), definition_telnet.c (telnet of 2.6).
 */
#pragma once

#include "registry/definition.h"

/* Letters, digits, '_', '$': safe in JSON and in our answers as it is. */
bool definition_is_identifier(struct str s) MUST_CHECK;
/* In the order in which it stays; what is there twice goes. */
void definition_use_methods(struct definition_method *v, size_t n,
                            struct definition_view *out) NONNULL;
