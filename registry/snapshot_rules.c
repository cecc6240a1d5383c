/*
 * Rules of the last run, for a start while the registry is down: a kind takes over what was saved of a node when it first
 * needs that node, and saves it from then on; what nobody has needed since the start is saved again as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/core.h"

struct saved_rule {
    UT_hash_handle hh;
    struct store_rule v; /* its texts are in `key` and behind it */
    char key[];          /* REGISTRY '\n' NODE */
};

enum { KEY_MAX = STORE_NAME_MAX + STORE_RULE_NODE_MAX + 2 };

/* Its length; 0 = no node has such a name. */
static size_t make_key(struct str registry, struct str node, char *out)
{
    int n = snprintf(out, KEY_MAX, STR_FMT "\n" STR_FMT, STR_ARG(registry), STR_ARG(node));

    return n > 0 && n < KEY_MAX ? (size_t)n : 0;
}

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): the macros of uthash */
static struct saved_rule *find(const struct registry *r, const char *key, size_t n)
{
    struct saved_rule *s = NULL;

    HASH_FIND(hh, r->saved_rules, key, n, s);
    return s;
}

static void add(struct registry *r, struct saved_rule *s, size_t n_key)
{
    HASH_ADD(hh, r->saved_rules, key, n_key, s);
}

static void drop(struct registry *r, struct saved_rule *s)
{
    HASH_DEL(r->saved_rules, s);
    free(s);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

void saved_rules_add(struct registry *r, const struct store_rule *v)
{
    char key[KEY_MAX];
    size_t n = make_key(v->registry, v->node, key);
    struct saved_rule *s = NULL;

    if (n == 0 || v->node.n == 0 || find(r, key, n) != NULL)
        return;
    s = xcalloc(1, sizeof(*s) + n + v->text.n + 1);
    memcpy(s->key, key, n);
    if (v->text.n != 0)
        memcpy(s->key + n, v->text.p, v->text.n);
    s->v = (struct store_rule){.registry = {s->key, v->registry.n},
                               .node = {s->key + v->registry.n + 1, v->node.n},
                               .text = {s->key + n, v->text.n}};
    add(r, s, n);
}

bool saved_rules_has(const struct source *source, struct str node)
{
    char key[KEY_MAX];
    size_t n = make_key(str_from(source->conf.name), node, key);

    return n != 0 && find(source->home, key, n) != NULL;
}

bool saved_rules_take(const struct source *source, struct str node, struct arena *a,
                      struct str *text)
{
    char key[KEY_MAX];
    size_t n = make_key(str_from(source->conf.name), node, key);
    struct saved_rule *s = n != 0 ? find(source->home, key, n) : NULL;

    if (s == NULL)
        return false;
    *text = arena_str(a, s->v.text);
    drop(source->home, s);
    return true;
}

void saved_rules_forget_nodes(const struct source *source)
{
    for (struct saved_rule *s = source->home->saved_rules, *next = NULL; s != NULL; s = next) {
        next = s->hh.next;
        if (str_is(s->v.registry, source->conf.name) && str_find(s->v.node, '/') == s->v.node.n)
            drop(source->home, s);
    }
}

bool saved_rules_write(const struct registry *r, struct store_writer *w)
{
    bool ok = true;

    for (const struct saved_rule *s = r->saved_rules; s != NULL; s = s->hh.next)
        ok = store_put_rule(w, &s->v) && ok;
    for (size_t i = 0; i < r->n_sources; i++) {
        const struct source *s = &r->sources[i];

        if (s->kind->save_rules != NULL && s->impl != NULL)
            ok = s->kind->save_rules(s->impl, w) && ok;
    }
    return ok;
}

void saved_rules_end(struct registry *r)
{
    while (r->saved_rules != NULL)
        drop(r, r->saved_rules); /* NOLINT(clang-analyzer-unix.Malloc): left the table */
}
