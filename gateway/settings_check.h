/*
 * What the key table cannot say: references between sections, types, templates, and the values made from
 * others.
 */
#pragma once

#include "gateway/keys.h"

/* Fills the resolved members of c->s; everything wrong is added to c->errs. */
void settings_resolve(struct key_context *c) NONNULL;
