/*
 * How rows of the key table are written: the type of the field is checked by the compiler.
 */
#pragma once

#include "gateway/keys.h"

/* The place of field `f` in struct S, which must have type T. */
#define PLACE(S, f, T) (offsetof(S, f) + 0 * sizeof(char[_Generic(((S *)0)->f, T : 1)]))

#define ROW_U32(S, f)    .type = KEY_U32, .offset = PLACE(S, f, uint32_t), .set_offset = SIZE_MAX
#define ROW_MS(S, f)     .type = KEY_MS, .offset = PLACE(S, f, uint32_t), .set_offset = SIZE_MAX
#define ROW_MS64(S, f)   .type = KEY_MS64, .offset = PLACE(S, f, uint64_t), .set_offset = SIZE_MAX
#define ROW_SIZE(S, f)   .type = KEY_SIZE, .offset = PLACE(S, f, size_t), .set_offset = SIZE_MAX
#define ROW_BOOL(S, f)   .type = KEY_BOOL, .offset = PLACE(S, f, bool), .set_offset = SIZE_MAX
#define ROW_DOUBLE(S, f) .type = KEY_DOUBLE, .offset = PLACE(S, f, double), .set_offset = SIZE_MAX
#define ROW_CHOICE(S, f) .type = KEY_CHOICE, .offset = PLACE(S, f, uint32_t), .set_offset = SIZE_MAX
#define ROW_FLAGS(S, f)  .type = KEY_FLAGS, .offset = PLACE(S, f, uint32_t), .set_offset = SIZE_MAX
#define ROW_TEXT(S, f)   .type = KEY_TEXT, .offset = PLACE(S, f, struct str), .set_offset = SIZE_MAX
#define ROW_TEXTS(S, f) \
    .type = KEY_TEXTS, .offset = PLACE(S, f, struct text_list), .set_offset = SIZE_MAX
#define ROW_MAP(S, f) \
    .type = KEY_TEXT_MAP, .offset = PLACE(S, f, struct text_map), .set_offset = SIZE_MAX
#define ROW_SOURCES(S, f) \
    .type = KEY_SOURCE_MAP, .offset = PLACE(S, f, struct source_map), .set_offset = SIZE_MAX
#define ROW_BLOCK(t) .type = KEY_BLOCK, .table = (t), .set_offset = SIZE_MAX
#define ROW_EMBED(S, f, t) \
    .name = "", .type = KEY_EMBED, .offset = offsetof(S, f), .table = (t), .set_offset = SIZE_MAX
#define ROW_BLOCKS(S, f, n, T, t)                                                        \
    .type = KEY_BLOCKS, .offset = PLACE(S, f, T *), .count_offset = PLACE(S, n, size_t), \
    .set_offset = SIZE_MAX, .table = (t), .size = sizeof(T)

extern const struct key keys_services[];
extern const struct key keys_routes[];
extern const struct key keys_policy[];
extern const struct key keys_hash[];
extern const struct key keys_retry[];
extern const struct key keys_outlier[];
extern const struct key keys_breakers[];

bool key_is_name(struct str s);
bool key_is_interface(struct str s);
bool key_is_java_name(struct str s);
bool key_is_header(struct str s);
bool key_is_address(struct str s);
bool key_is_path(struct str s);

/* Inheritance: a service from the defaults, a route from the method or service that it calls. */
void key_init_service(struct key_context *c, void *element, const struct yaml_node *node,
                      const void *parent);
void key_init_route(struct key_context *c, void *element, const struct yaml_node *node,
                    const void *parent);
