/*
 * Definitions in the saved lists: a registry that is down, or that lost its data, says nothing of methods until it is
 * back or the providers have restarted.  They wait here until their reference has its first list.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"
#include "registry/reference_definitions.h"

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct saved_definitions *find(const struct registry *r, const char *key)
{
    struct saved_definitions *s = NULL;

    HASH_FIND_STR(r->saved_definitions, key, s);
    return s;
}

static struct saved_definitions *add(struct registry *r, const char *key, size_t n)
{
    struct saved_definitions *s = xcalloc(1, sizeof(*s) + n + 1);

    memcpy(s->key, key, n);
    HASH_ADD_STR(r->saved_definitions, key, s);
    return s;
}

static void take_out(struct registry *r, struct saved_definitions *s)
{
    HASH_DEL(r->saved_definitions, s);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

void saved_definitions_free(struct saved_definitions *s)
{
    for (size_t i = 0; s != NULL && i < s->n; i++) {
        free(s->v[i].application);
        definition_put(s->v[i].definition);
    }
    free(s);
}

void saved_definitions_end(struct registry *r)
{
    while (r->saved_definitions != NULL) {
        struct saved_definitions *s = r->saved_definitions;

        take_out(r, s);
        saved_definitions_free(s);
    }
}

/* ---------------------------------------------------------------- reading */

static void keep(struct registry *r, const struct store_definition *d, const char *key, size_t n)
{
    struct err e = {0};
    struct definition *fresh = definition_read(d->text, &e);
    struct saved_definitions *s = NULL;
    char *application = strndup(d->application.p, d->application.n);

    if (application == NULL)
        fatal("out of memory");
    if (fresh == NULL)
        log_warn("registry", "%s: a saved definition is not used: %s", key, e.text);
    if (fresh != NULL && definitions_have_room(r, fresh->n)) {
        s = find(r, key);
        if (s == NULL)
            s = add(r, key, n);
    }
    if (s == NULL || s->n == DEFINITIONS_MAX) {
        definition_put(fresh);
        free(application);
        return;
    }
    s->v[s->n].application = application;
    s->v[s->n++].definition = fresh;
    r->definition_bytes += fresh->n;
}

void saved_definitions_load(void *ctx, const struct store_definition *d)
{
    struct registry *r = ctx;
    struct buf key;

    buf_init(&key, REFKEY_TEXT_MAX + 1);
    refkey_print(&d->key, &key);
    buf_add_u8(&key, '\0');
    if (!key.failed && snapshot_has_list(r, d->registry, (const char *)key.data))
        keep(r, d, (const char *)key.data, key.len - 1);
    buf_free(&key);
}

struct saved_definitions *saved_definitions_take(const struct reference *ref)
{
    struct saved_definitions *s = find(ref->home, ref->key_text);

    if (s == NULL || snapshot_find(ref->home, ref->source, ref->key_text) == NULL)
        return NULL;
    take_out(ref->home, s);
    for (size_t i = 0; i < s->n; i++)
        ref->home->definition_bytes -= s->v[i].definition->n;
    return s;
}

/* ---------------------------------------------------------------- writing */

static bool put(struct store_writer *w, const char *registry, const struct refkey *key,
                const char *application, const struct definition *d)
{
    return store_put_definition(w, &(struct store_definition){.registry = str_from(registry),
                                                              .key = *key,
                                                              .application = str_from(application),
                                                              .text = {d->text, d->n}});
}

static bool put_reference(struct store_writer *w, const struct reference *ref)
{
    bool ok = true;

    for (size_t i = 0; ref->definitions != NULL && i < ref->definitions->n; i++) {
        const struct described *d = &ref->definitions->v[i];

        if (d->definition != NULL)
            ok = put(w, ref->source->conf.name, &ref->key, d->application, d->definition) && ok;
    }
    return ok;
}

/* Of a reference that nobody has asked for since the start. */
static bool put_unasked(const struct registry *r, struct store_writer *w,
                        const struct saved_definitions *s)
{
    const struct snapshot_entry *list = NULL;
    struct refkey key;
    struct err e;
    bool ok = true;

    for (size_t i = 0; i < r->n_sources && list == NULL; i++)
        list = snapshot_find(r, &r->sources[i], s->key);
    if (list == NULL || !refkey_parse(str_from(s->key), &key, &e))
        return true;
    for (size_t i = 0; i < s->n; i++)
        ok = put(w, list->registry, &key, s->v[i].application, s->v[i].definition) && ok;
    return ok;
}

void saved_definitions_write(const struct registry *r, struct store_writer *w)
{
    bool ok = true;

    for (const struct reference *ref = r->by_key; ref != NULL; ref = ref->hh.next) {
        if (ref->directory != NULL && ref->directory->n != 0 && !ref->source->kind->fixed)
            ok = put_reference(w, ref) && ok;
    }
    for (const struct saved_definitions *s = r->saved_definitions; s != NULL; s = s->hh.next)
        ok = put_unasked(r, w, s) && ok;
    if (!ok)
        log_warn("registry", "not all methods of services fit into the file of saved lists");
}
