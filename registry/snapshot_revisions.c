/*
 * What revisions of applications export, of the last run.  An application takes over what was saved of it when it is first
 * used; what nobody uses is saved again as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/core.h"

/* Of one application. */
struct snapshot_app {
    UT_hash_handle hh;
    const char *registry; /* name; an address that the registry owns */
    struct list revisions;
    size_t key_len;
    char key[]; /* REGISTRY '\n' APP */
};

struct snapshot_revision {
    struct list link;
    struct arena arena;
    struct store_revision v;
};

static size_t make_key(struct str registry, struct str app, char *out, size_t cap)
{
    int n = snprintf(out, cap, STR_FMT "\n" STR_FMT, STR_ARG(registry), STR_ARG(app));

    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

enum { KEY_MAX = STORE_NAME_MAX + APP_NAME_MAX + 2 };

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct snapshot_app *find(const struct registry *r, const char *key, size_t len)
{
    struct snapshot_app *app = NULL;

    HASH_FIND(hh, r->snapshot_apps, key, len, app);
    return app;
}

static void add(struct registry *r, struct snapshot_app *app)
{
    HASH_ADD(hh, r->snapshot_apps, key, app->key_len, app);
}

static void drop(struct registry *r, struct snapshot_app *app)
{
    struct list *l = NULL;

    HASH_DEL(r->snapshot_apps, app);
    while ((l = list_take(&app->revisions)) != NULL) {
        struct snapshot_revision *s = container_of(l, struct snapshot_revision, link);

        arena_free(&s->arena);
        free(s);
    }
    free(app);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

static struct snapshot_app *get(struct registry *r, const char *registry, struct str name)
{
    char key[KEY_MAX];
    size_t len = make_key(str_from(registry), name, key, sizeof(key));
    struct snapshot_app *app = find(r, key, len);

    if (app != NULL)
        return app;
    app = xcalloc(1, sizeof(*app) + len);
    memcpy(app->key, key, len);
    app->key_len = len;
    app->registry = registry;
    list_init(&app->revisions);
    add(r, app);
    return app;
}

void snapshot_add_revision(struct registry *r, const struct source *source,
                           const struct store_revision *v)
{
    struct snapshot_app *app = get(r, source->conf.name, v->app);
    struct snapshot_revision *s = xcalloc(1, sizeof(*s));

    arena_init(&s->arena);
    s->v.registry = str_from(source->conf.name);
    s->v.app = arena_str(&s->arena, v->app);
    s->v.revision = arena_str(&s->arena, v->revision);
    metadata_copy(&v->services, &s->arena, &s->v.services);
    list_init(&s->link);
    list_add(&app->revisions, &s->link);
}

void snapshot_take_revisions(const struct source *source, struct str name,
                             void (*take)(void *ctx, const struct store_revision *v), void *ctx)
{
    struct registry *r = source->home;
    char key[KEY_MAX];
    size_t len = make_key(str_from(source->conf.name), name, key, sizeof(key));
    struct snapshot_app *app = find(r, key, len);

    if (app == NULL)
        return;
    list_each(l, &app->revisions) {
        take(ctx, &container_of(l, struct snapshot_revision, link)->v);
    }
    drop(r, app);
}

bool snapshot_put_revisions(const struct registry *r, struct store_writer *w)
{
    bool ok = true;

    for (const struct snapshot_app *app = r->snapshot_apps; app != NULL; app = app->hh.next) {
        list_each(l, &app->revisions) {
            ok = store_put_revision(w, &container_of(l, struct snapshot_revision, link)->v) && ok;
        }
    }
    for (size_t i = 0; i < r->n_sources; i++) {
        const struct source *s = &r->sources[i];

        if (s->kind->save != NULL && s->impl != NULL)
            ok = s->kind->save(s->impl, w) && ok;
    }
    return ok;
}

void snapshot_free_revisions(struct registry *r)
{
    while (r->snapshot_apps != NULL)
        drop(r, r->snapshot_apps); /* NOLINT(clang-analyzer-unix.Malloc): left the table */
}
