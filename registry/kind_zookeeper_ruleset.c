/*
 * Whom published rules concern: by the service and by the applications of its providers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"
#include "registry/zk_config.h"

enum { CONFIG_APPS_MAX = 65536 };

/* An application whose providers we have seen. */
struct zk_config_app {
    UT_hash_handle hh;
    char name[];
};

static const char *application_of(const struct zk *z)
{
    return z->source->home->opts.application;
}

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
static bool is_used_app(const struct zk *z, struct str name)
{
    struct zk_config_app *a = NULL;

    HASH_FIND(hh, z->config.apps, name.n != 0 ? name.p : "", name.n, a);
    return a != NULL;
}

static void use_app(struct zk *z, struct str name)
{
    struct zk_config_app *a = NULL;

    if (name.n == 0 || is_used_app(z, name) || HASH_COUNT(z->config.apps) >= CONFIG_APPS_MAX)
        return;
    a = xcalloc(1, sizeof(*a) + name.n + 1);
    memcpy(a->name, name.p, name.n);
    HASH_ADD_STR(z->config.apps, name, a);
}

void zk_ruleset_free(struct zk *z)
{
    struct zk_config_app *a = NULL;
    struct zk_config_app *next = NULL;

    HASH_ITER(hh, z->config.apps, a, next)
    {
        HASH_DEL(z->config.apps, a);
        free(a);
    }
}
/* NOLINTEND(readability-function-size) */

/* ---------------------------------------------------------------- of a rule */

static bool is_about_service(const struct zk_config_node *n)
{
    return str_find(n->key, ':') != n->key.n;
}

static struct zk_path *path_about(const struct zk *z, const struct zk_config_node *n)
{
    struct str rest = STR_NONE;

    return zk_path_of((struct zk *)(uintptr_t)z, str_cut(n->key, ':', &rest)); /* NOLINT */
}

static bool has_provider_of(const struct zk_path *p, struct str application)
{
    list_each(l, &p->refs) {
        const struct directory *d = container_of(l, struct zk_ref, link)->ref->directory;

        for (size_t i = 0; d != NULL && i < d->n; i++) {
            if (str_eq(d->providers[i].application, application))
                return true;
        }
    }
    return false;
}

void zk_config_reread(struct zk *z, const struct zk_config_node *n)
{
    bool ours = str_is(n->key, application_of(z)) && n->kind != RULE_NODE_TAG;

    if (is_about_service(n)) {
        struct zk_path *p = path_about(z, n);

        if (p != NULL)
            zk_path_read(p);
        return;
    }
    for (struct zk_path *p = z->paths, *next = NULL; p != NULL; p = next) {
        next = p->hh.next;
        if (ours || has_provider_of(p, n->key))
            zk_path_read(p);
    }
}

bool zk_config_concerns_us(const struct zk *z, const struct zk_config_node *n)
{
    if (is_about_service(n))
        return path_about(z, n) != NULL;
    return is_used_app(z, n->key) ||
           (str_is(n->key, application_of(z)) && n->kind != RULE_NODE_TAG);
}

/* ---------------------------------------------------------------- of a reference */

/* NULL: there is no such rule.  One that is not read yet clears `*settled`. */
static struct rules *look_up(struct zk *z, struct str key, const char *kind, bool *settled)
{
    char name[REFKEY_TEXT_MAX + 64];
    int len = snprintf(name, sizeof(name), STR_FMT "%s", STR_ARG(key), kind);
    struct zk_config_node *n = NULL;

    if (len < 0 || (size_t)len >= sizeof(name))
        return NULL;
    n = zk_config_find(z, (struct str){name, (size_t)len});
    if (n == NULL)
        return NULL;
    zk_config_want(z, n);
    *settled = *settled && n->known;
    return n->rules;
}

static struct str service_key(const struct refkey *k, char *out, size_t cap)
{
    int n = snprintf(out, cap, STR_FMT ":" STR_FMT ":" STR_FMT, STR_ARG(k->interface),
                     STR_ARG(k->version), STR_ARG(k->group));

    return n > 0 && (size_t)n < cap ? (struct str){out, (size_t)n} : STR_NONE;
}

static void add_of_providers(struct zk *z, const struct zk_apps *apps, const char *kind,
                             struct ruleset *out, bool *settled)
{
    for (size_t i = 0; i < apps->n; i++)
        ruleset_add(out, look_up(z, apps->v[i], kind, settled), apps->v[i]);
}

bool zk_config_rules(struct zk *z, const struct zk_path *p, const struct refkey *k,
                     const struct zk_apps *apps, struct ruleset *out)
{
    struct str own = str_from(application_of(z));
    char text[REFKEY_TEXT_MAX];
    struct str service = service_key(k, text, sizeof(text));
    bool settled = z->config.ready;

    for (size_t i = 0; i < apps->n; i++)
        use_app(z, apps->v[i]);
    out->n = 0;
    ruleset_add(out, p->rules[ZK_CONFIGURATORS - ZK_CONFIGURATORS], STR_NONE);
    ruleset_add(out, look_up(z, own, ".configurators", &settled), STR_NONE);
    ruleset_add(out, look_up(z, service, ".configurators", &settled), STR_NONE);
    add_of_providers(z, apps, ".tag-router", out, &settled);
    ruleset_add(out, look_up(z, service, ".condition-router", &settled), STR_NONE);
    add_of_providers(z, apps, ".condition-router", out, &settled);
    ruleset_add(out, look_up(z, own, ".condition-router", &settled), STR_NONE);
    ruleset_add(out, p->rules[ZK_ROUTERS - ZK_CONFIGURATORS], STR_NONE);
    return settled;
}
