/*
 * Intrusive doubly linked list.  The owner embeds `struct list` and uses container_of; an element that
 * is in no list points to itself, so removing it twice is harmless.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct list {
    struct list *prev;
    struct list *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/* Behind the last element. */
static inline void list_add(struct list *head, struct list *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void list_remove(struct list *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

/* The first element, taken out; NULL when empty. */
static inline struct list *list_take(struct list *head)
{
    struct list *l = head->next;

    if (l == head)
        return NULL;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was taken and freed before is not in the list */
    list_remove(l);
    return l;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): `l` is a name that is declared here */
#define list_each(l, head) for (struct list *l = (head)->next; l != (head); l = l->next)
/* The body may remove `l`. */
#define list_each_safe(l, head)                                           \
    for (struct list *l = (head)->next, *l##_next = l->next; l != (head); \
         l = l##_next, l##_next = l->next)
/* NOLINTEND(bugprone-macro-parentheses) */
