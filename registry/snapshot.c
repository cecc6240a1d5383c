/*
 * The saved lists in memory: read at start, written a second after a change and at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

static void on_registry(void *ctx, const struct store_registry *s)
{
    /* a kind that wants the largest zxid back asks for it here; ZooKeeper tells a wiped tree by czxid */
    log_debug("registry", "saved lists of registry " STR_FMT, STR_ARG(s->name));
}

static void on_entry(void *ctx, const struct store_entry *s)
{
    struct registry *r = ctx;
    struct snapshot_entry *e = NULL;
    struct buf key;

    buf_init(&key, REFKEY_TEXT_MAX + 1);
    refkey_print(&s->key, &key);
    buf_add_u8(&key, '\0');
    e = xcalloc(1, sizeof(*e) + key.len);
    memcpy(e->key, key.data, key.len);
    buf_free(&key);
    arena_init(&e->arena);
    e->urls = arena_alloc(&e->arena, (s->n_urls + 1) * sizeof(struct str));
    for (size_t i = 0; i < s->n_urls; i++)
        e->urls[i] = arena_str(&e->arena, s->urls[i]);
    e->n = s->n_urls;
    e->czxid = s->czxid;
    e->saved_wall_ms = s->saved_wall_ms;
    HASH_ADD_STR(r->snapshot, key, e);
}

static bool is_on(const struct registry *r)
{
    return r->opts.state_dir != NULL && r->opts.state_dir[0] != '\0' && r->n_sources != 0;
}

void snapshot_load(struct registry *r)
{
    struct store_reader reader = {.on_registry = on_registry, .on_entry = on_entry, .ctx = r};
    struct err e = {0};

    counter_set(&r->numbers.writable, 1);
    if (!is_on(r))
        return;
    switch (store_load(r->opts.state_dir, &reader, &e)) {
    case STORE_OK:
        log_info("registry", "%u saved lists read, %zu ignored", HASH_COUNT(r->snapshot),
                 reader.n_ignored);
        break;
    case STORE_ABSENT:
        break;
    case STORE_DAMAGED:
    case STORE_IO:
        log_warn("registry", "the saved lists are ignored: %s", e.text);
        break;
    }
    if (!store_writable(r->opts.state_dir, &e)) {
        log_warn(
            "registry",
            "provider lists cannot be saved, a start with the registry down will know none: %s",
            e.text);
        counter_set(&r->numbers.writable, 0);
        r->unwritable_told = true;
    }
}

void snapshot_free(struct registry *r)
{
    struct snapshot_entry *e = NULL;
    struct snapshot_entry *next = NULL;

    HASH_ITER(hh, r->snapshot, e, next)
    {
        HASH_DEL(r->snapshot, e);
        arena_free(&e->arena);
        free(e);
    }
}

static void put_reference(struct store_writer *w, const struct reference *ref)
{
    const struct directory *d = ref->directory;
    struct arena a;
    struct str *urls = NULL;
    size_t n = 0;
    struct buf text;

    if (ref->source == NULL || d == NULL || d->n == 0)
        return;
    arena_init(&a);
    buf_init(&text, 65536);
    urls = arena_alloc(&a, (d->n + 1) * sizeof(*urls));
    for (size_t i = 0; i < d->n; i++) {
        if (d->providers[i].unusable != USABLE && d->providers[i].unusable != UNUSABLE_ADDRESS)
            continue;
        buf_truncate(&text, 0);
        provider_print(&d->providers[i], &text);
        urls[n++] = arena_str(&a, buf_str(&text));
    }
    const struct store_entry e = {
        .registry = str_from(ref->source->conf.name),
        .key = ref->key,
        .czxid = ref->czxid,
        .saved_wall_ms = wall_ms(),
        .urls = urls,
        .n_urls = n,
    };

    if (n != 0 && !store_put_entry(w, &e))
        log_warn("registry", "the list of %s does not fit into the saved lists", ref->key_text);
    buf_free(&text);
    arena_free(&a);
}

/* Entries that nobody has asked for since the start stay as they were: they may be wanted after the next. */
static void put_unasked(struct registry *r, struct store_writer *w, const struct snapshot_entry *s)
{
    struct reference *ref = NULL;
    struct store_entry e = {.registry = str_from(r->sources[0].conf.name),
                            .czxid = s->czxid,
                            .saved_wall_ms = s->saved_wall_ms,
                            .urls = s->urls,
                            .n_urls = s->n};
    struct err err;

    HASH_FIND_STR(r->by_key, s->key, ref);
    if (ref != NULL || !refkey_parse(str_from(s->key), &e.key, &err))
        return;
    if (!store_put_entry(w, &e))
        log_warn("registry", "the list of %s does not fit into the saved lists", s->key);
}

void snapshot_save(struct registry *r)
{
    struct err e = {0};
    struct store_writer *w = NULL;
    bool ok = true;

    r->dirty_since_ms = 0;
    if (!is_on(r))
        return;
    w = store_begin(r->opts.state_dir, &e);
    for (size_t i = 0; w != NULL && i < r->n_sources; i++) {
        const struct store_registry s = {.name = str_from(r->sources[i].conf.name)};

        ok = store_put_registry(w, &s);
    }
    for (const struct reference *ref = r->by_key; w != NULL && ref != NULL; ref = ref->hh.next)
        put_reference(w, ref);
    for (const struct snapshot_entry *s = r->snapshot; w != NULL && s != NULL; s = s->hh.next)
        put_unasked(r, w, s);
    ok = w != NULL && store_commit(w, &e) && ok;
    counter_set(&r->numbers.writable, ok ? 1 : 0);
    if (ok) {
        counter_set(&r->numbers.saved_wall_ms, wall_ms());
        r->unwritable_told = false;
    } else if (!r->unwritable_told) {
        log_warn("registry", "provider lists cannot be saved: %s", e.text);
        r->unwritable_told = true;
    }
}
